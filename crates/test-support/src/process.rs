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
        let mut pipe = child.stderr.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        let status = end_within(&mut child, LIMIT);
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let stderr = reader.join().unwrap().unwrap();
        assert!(status.is_some(), "{command:?} did not end: {stderr}");
        Self {
            code: status.and_then(|status| status.code()),
            stderr,
        }
    }

    /// Returns the error message of this program.
    ///
    /// It must be one line that starts with the program's name; all other lines must be log lines
    /// in JSON.
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

/// Runs a command with an input until it exits.
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
    let output = child.wait_with_output().unwrap();
    // A command that does not read its input closes it, which is not a failure of the test.
    let _ = feeder.join().unwrap();
    Run {
        code: output.status.code().expect("the command ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
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
