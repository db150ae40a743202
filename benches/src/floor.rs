//! The floor: the cost of a function if only the kernel is between it and its caller.

use std::{
    io::Write,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use crate::functions;

/// Capacity of a pipe in bytes; less than this can be written before anything is read.
const PIPE_SIZE: usize = 64 << 10;

/// Starts a program, writes its input, reads its output and waits for its end.
///
/// The standard library uses `posix_spawn` here.
pub(crate) fn run(program: &Path, input: &[u8]) -> Result<Vec<u8>> {
    let mut child = functions::command(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let mut stdin = child.stdin.take().context("the process has no input")?;
    let output = if input.len() < PIPE_SIZE {
        stdin.write_all(input)?;
        drop(stdin);
        child.wait_with_output()?
    } else {
        thread::scope(|scope| {
            let feeder = scope.spawn(move || stdin.write_all(input));
            let output = child.wait_with_output();
            // A function that does not read all of its input fails the check below.
            let _ = feeder.join();
            output
        })?
    };
    ensure!(
        output.status.success(),
        "{} fails: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// Returns the duration of one run.
pub(crate) fn time(program: &Path, input: &[u8]) -> Result<Duration> {
    let started = Instant::now();
    run(program, input)?;
    Ok(started.elapsed())
}

/// Returns the runs per second with `parallel` processes at a time.
pub(crate) fn throughput(
    program: &Path,
    input: &Bytes,
    parallel: usize,
    span: Duration,
) -> Result<f64> {
    let started = Instant::now();
    let counts: Vec<Result<u32>> = thread::scope(|scope| {
        let lane = || -> Result<u32> {
            let mut runs = 0;
            while started.elapsed() < span {
                run(program, input)?;
                runs += 1;
            }
            Ok(runs)
        };
        let lanes: Vec<_> = (0..parallel).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .map(|lane| {
                lane.join()
                    .unwrap_or_else(|_| anyhow::bail!("a lane failed"))
            })
            .collect()
    });
    let mut total = 0;
    for count in counts {
        total += count?;
    }
    Ok(f64::from(total) / started.elapsed().as_secs_f64())
}
