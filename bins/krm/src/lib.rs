//! The command line of `krm`: commands and terminal output.
//!
//! `main.rs` calls [`main`]; `cargo xtask` generates completions and man pages from [`command`].

mod cli;
mod connection;
mod doctor;
mod eval;
mod failure;
mod functions;
mod image;
mod report;
mod status;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::Cli;
use failure::Failure;

/// Runs the command of this process and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Returns the definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command on a tokio runtime with one thread, because a command does one thing at a time.
fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(cli.run())
}
