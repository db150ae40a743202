//! The function runner: flags and wiring only.

mod enabled;
mod flags;
mod run;
mod signals;
mod tls;

use std::process::ExitCode;

use flags::Flags;

fn main() -> ExitCode {
    let flags = Flags::from_command_line();
    match run::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-runner: {error:#}");
            ExitCode::FAILURE
        }
    }
}
