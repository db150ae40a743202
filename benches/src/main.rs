//! Measures the runner against the floor: the cost of the same functions without the runner, on the
//! same machine and in the same run.
//!
//! ```text
//! rows ─→ floor                    (spawn, feed, drain, wait)
//!      ├→ runner, wrapper          (the real binaries, over gRPC)
//!      └→ cluster ─→ runner ─→ pod (on the test bed)              ─→ table
//! ```
//!
//! Absolute figures drift with the machine. Floor and runner are measured in turns, in small
//! rounds, so that the drift affects both and their ratio stays valid.

mod client;
mod cluster;
mod floor;
mod functions;
mod line;
mod list;
mod process;
mod relay;
mod rows;
mod runner;
mod samples;
mod table;
mod wrapper;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;
use runner_devtools::{exit_code, failure};

use functions::Functions;
use table::Table;

/// Measures the function runner against the raw cost of the functions it runs.
#[derive(Debug, Parser)]
struct Options {
    /// Fewer rounds: a few minutes, and less to rely on
    #[arg(long)]
    quick: bool,
    /// End with 1 if a goal is missed
    #[arg(long)]
    check: bool,
    /// Only groups whose name contains this: latency, throughput, large, memory, wrapper, pods, pool
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Measure this build of function-runner instead of the floor, in turns with the own build
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

fn main() -> ExitCode {
    let remedy = "run: make bench, which builds and sets up everything it needs";
    exit_code(run(&Options::parse()), remedy)
}

fn run(options: &Options) -> Result<()> {
    // One crypto provider for all TLS connections of the process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let functions = Functions::prepare()?;
    let mut table = Table::default();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(rows::measure(options, &functions, &mut table))?;
    let misses = table.misses();
    match misses {
        0 => println!("every goal is reached"),
        1 => println!("one goal is missed"),
        _ => println!("{misses} goals are missed"),
    }
    if options.check && misses > 0 {
        return Err(failure(
            format!("--check: {misses} of the goals are missed"),
            "see the rows that say MISS; repeat the run with nothing else running",
        ));
    }
    Ok(())
}
