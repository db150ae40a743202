//! Starts this test binary again as a process with its own environment.

use std::{
    future::Future,
    process::{Command, Stdio},
};

use runner_telemetry::{LogFormat, LogOptions};
use runner_test_support::{Ended, without_telemetry};
use serde_json::Value;

pub const SCENARIO: &str = "TELEMETRY_SCENARIO";
const LEVEL: &str = "TELEMETRY_LOG_LEVEL";

/// The standard error of a process that has exited.
pub struct Log {
    pub stderr: String,
}

/// Runs a scenario in a process with these variables and no other `OTEL_*` variables.
///
/// The scenario itself checks all state inside its process, and must succeed.
pub fn play(scenario: &str, log_level: u8, variables: &[(&str, &str)]) -> Log {
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command.args(["--ignored", "--exact", "scenario", "--nocapture"]);
    without_telemetry(&mut command)
        .envs(variables.iter().copied())
        .env(SCENARIO, scenario)
        .env(LEVEL, log_level.to_string())
        .stdout(Stdio::null());
    let ended = Ended::of(command);
    let Ended { code, stderr } = &ended;
    assert_eq!(*code, Some(0), "scenario {scenario:?}: {stderr}");
    Log {
        stderr: ended.stderr,
    }
}

/// Returns the log options inside a scenario: the level its test chose, in JSON.
pub fn log_options() -> LogOptions {
    log_options_as(LogFormat::Json)
}

/// Returns the log options inside a scenario, with the level its test chose.
pub fn log_options_as(format: LogFormat) -> LogOptions {
    let level = std::env::var(LEVEL).expect("a test sets the level");
    let level = level.parse().expect("a number");
    LogOptions { level, format }
}

/// Runs a scenario on a multi-threaded runtime, as the runner uses.
pub fn block_on<F: Future<Output = ()>>(scenario: F) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(scenario);
}

/// Runs a scenario on a single-threaded runtime, as the wrapper uses.
pub fn block_on_one_thread<F: Future<Output = ()>>(scenario: F) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(scenario);
}

// === impl Log ===

impl Log {
    /// Returns the lines of standard error, each of which must be a JSON object.
    pub fn lines(&self) -> Vec<Value> {
        self.stderr
            .lines()
            .map(|line| match serde_json::from_str(line) {
                Ok(value @ Value::Object(_)) => value,
                other => panic!("{line:?} is no JSON object: {other:?}"),
            })
            .collect()
    }

    /// Returns the only line with the given message.
    pub fn line(&self, message: &str) -> Value {
        let mut lines = self.lines();
        lines.retain(|line| line["message"] == message);
        assert_eq!(lines.len(), 1, "lines with {message:?} in\n{}", self.stderr);
        lines.remove(0)
    }
}
