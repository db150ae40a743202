//! Programs that run to their end.

use std::{
    io::{Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::LIMIT;

/// The result of a program that exited without having served.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; none after a signal.
    pub code: Option<i32>,
    /// Text of standard error.
    pub stderr: String,
}

/// The result of a command that got an input.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Text of standard output.
    pub stdout: String,
    /// Text of standard error.
    pub stderr: String,
}

// === impl Ended ===

impl Ended {
    /// Runs a command that must exit by itself within [`LIMIT`].
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = read(child.stderr.take());
        let status = end_within(&mut child, LIMIT);
        kill(&mut child);
        let stderr = stderr.join().unwrap();
        assert!(status.is_some(), "{command:?} did not end: {stderr}");
        Self {
            code: status.and_then(|status| status.code()),
            stderr,
        }
    }

    /// Returns the error message of this program.
    ///
    /// The message must be one line that starts with the program's name; all other lines must be
    /// log lines in JSON.
    #[must_use]
    pub fn message(&self, program: &str) -> &str {
        let is_log = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
        let mut printed = self.stderr.lines().filter(|line| !is_log(line));
        let message = printed.next().unwrap_or_default();
        assert!(
            message.starts_with(&format!("{program}: ")) && printed.next().is_none(),
            "not one line: {}",
            self.stderr
        );
        message
    }
}

/// Runs a command with an input; it must exit by itself within [`LIMIT`].
#[must_use]
pub fn run(command: &mut Command, input: &str) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeder = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = end_within(&mut child, LIMIT);
    kill(&mut child);
    // A command that does not read its input closes it, which is not a failure of the test.
    let _ = feeder.join().unwrap();
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let code = status.and_then(|status| status.code());
    Run {
        code: code.unwrap_or_else(|| panic!("{command:?} did not end by itself: {stderr}")),
        stdout,
        stderr,
    }
}

/// Waits until a process exits by itself.
///
/// # Panics
///
/// Panics if the process still runs after [`LIMIT`]; it is killed then.
pub fn wait_for_end(child: &mut Child) -> ExitStatus {
    let status = end_within(child, LIMIT);
    kill(child);
    status.unwrap_or_else(|| panic!("process {} did not end within {LIMIT:?}", child.id()))
}

/// Removes the `OTEL_*` variables of the test's own environment from a command.
pub fn without_telemetry(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
}

/// Waits for the end of a process, at most this long.
pub(crate) fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let limit = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < limit => thread::sleep(Duration::from_millis(5)),
            ended => return ended.ok().flatten(),
        }
    }
}

/// Reads a pipe of a process to its end.
fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// Kills and reaps a process, if it still runs.
fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
