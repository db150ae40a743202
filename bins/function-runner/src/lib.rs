//! The function runner: flags and start-up only.
//!
//! `main.rs` calls [`main`]; `cargo xtask` generates completions and man pages from [`command`].

mod enabled;
mod flags;
mod pods;
mod registry;
mod run;
mod status;
mod tls;

use std::process::ExitCode;

use clap::CommandFactory;
use runner_core::with_causes;

use flags::Flags;

/// Serves as the command line of this process requests, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let flags = Flags::from_command_line();
    match run::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-runner: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Flags::command()
}
