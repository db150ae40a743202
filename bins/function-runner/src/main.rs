//! The function runner: flags and wiring only.

mod enabled;
mod flags;
mod pods;
mod registry;
mod run;
mod status;
mod tls;

use std::process::ExitCode;

use flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::from_command_line();
    match run::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-runner: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes in one line. Many errors quote their cause themselves: it is said once.
fn sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}
