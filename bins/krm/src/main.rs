//! `krm`: the command line for people who write packages and run functions over them.

mod cli;
mod connection;
mod doctor;
mod eval;
mod failure;
mod functions;
mod image;
mod list;
mod merge;
mod package;
mod patch;
mod report;
mod status;
mod yaml;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
