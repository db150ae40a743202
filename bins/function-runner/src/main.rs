//! The function runner: flags and start-up only.

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

/// Formats an error and its sources as one line; a source that an error already quotes is omitted.
fn sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}
