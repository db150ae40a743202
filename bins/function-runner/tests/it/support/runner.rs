//! A running function-runner with its log in JSON.

use std::{
    ops::{Deref, DerefMut},
    process::Command,
};

use runner_test_support::{Ended, ServerProcess};
use serde_json::{Value, json};

use super::{Setup, setup};

/// A runner that is stopped with all its functions at the end of the test.
pub struct Runner {
    pub setup: Setup,
    process: ServerProcess,
}

// === impl Runner ===

impl Runner {
    /// Starts the command and waits until it serves.
    pub(super) async fn start(command: Command, setup: Setup) -> Self {
        let process = ServerProcess::start(command).await;
        Self { setup, process }
    }

    /// Waits for a log line whose message contains a text.
    pub async fn logged(&self, text: &str) -> Value {
        let has_text = |line: &str| {
            let line = log_line(line);
            let found = line["message"].as_str().is_some_and(|m| m.contains(text));
            found.then_some(line)
        };
        self.process.find(text, has_text).await
    }

    /// Returns the log so far.
    pub fn log(&self) -> Vec<Value> {
        self.process.log().lines().map(log_line).collect()
    }

    /// Runs the binary with flags that make it exit without serving.
    pub fn refuses(flags: &[&str]) -> Ended {
        Self::refuses_in(&[], flags)
    }

    /// Runs the binary with flags and variables that make it exit without serving.
    pub fn refuses_in(environment: &[(&str, &str)], flags: &[&str]) -> Ended {
        let mut command = setup::command();
        command.args(flags).envs(environment.iter().copied());
        Ended::of(command)
    }
}

impl Deref for Runner {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for Runner {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

/// Parses a log line; a panic, or an error at the end, is not JSON and becomes the message.
fn log_line(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| json!({"message": line, "level": "plain"}))
}
