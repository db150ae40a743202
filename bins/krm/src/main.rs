//! `krm`: the command line for people who write packages and run functions over them.

mod cli;
mod connection;
mod doctor;
mod eval;
mod failure;
mod functions;
mod image;
mod report;
mod status;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Runs the command on a tokio runtime with one thread, because a command does one thing at a time.
fn run(cli: cli::Cli) -> Result<(), failure::Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failure::Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(cli.run())
}
