use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Instant,
};

use runner_proto::runner_status::{ExecRuntime, GetStatusResponse, Phase};
use runner_test_support::{
    BackgroundServer, FakeRunner, Function, LIMIT, status_server, wait_for_end,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::krm;

/// A running `krm status --watch`, which is killed when dropped.
struct Watching {
    child: Child,
    lines: mpsc::Receiver<String>,
}

/// Starts a runner that serves only its status.
fn reporting_runner() -> BackgroundServer {
    reporting_runner_at(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn reporting_runner_at(address: SocketAddr) -> BackgroundServer {
    let status = GetStatusResponse {
        version: "9.9.9".to_owned(),
        phase: Phase::Serving.into(),
        exec: Some(ExecRuntime {
            parallel: 2,
            running: 1,
            ..ExecRuntime::default()
        }),
        ..GetStatusResponse::default()
    };
    status_server(address, status)
}

/// Returns a `krm status --watch` that refreshes every 20 ms, with its output in a pipe.
fn watch_command(address: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krm"));
    command
        .args(["status", "--watch", "--interval", "20ms", "--address"])
        .arg(address.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

// === impl Watching ===

impl Watching {
    fn start(address: SocketAddr, more: &[&str]) -> Self {
        let mut child = watch_command(address).args(more).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Returns the next line that contains a text.
    fn next_line_with(&self, text: &str) -> String {
        let limit = Instant::now() + LIMIT;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("no line with {text:?}: {error}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a signal and returns the exit code.
    fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        wait_for_end(&mut self.child).code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn shows_the_status_of_a_runner() {
    let runner = reporting_runner();
    let address = runner.address().to_string();
    let run = krm(&["status", "--address", &address], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let first = format!("function-runner 9.9.9 at {address}: serving");
    assert!(run.stdout.starts_with(&first), "{}", run.stdout);
    assert!(
        run.stdout.contains("Processes: 1 running (at most 2)"),
        "{}",
        run.stdout
    );
    let run = krm(&["status", "--address", &address, "-o", "json"], "");
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["phase"], "serving");
    assert_eq!(document["pod"], serde_json::Value::Null);
}

#[test]
fn continues_a_watch_after_a_runner_restart_until_ctrl_c() {
    let runner = reporting_runner();
    let address = runner.address();
    let watching = Watching::start(address, &[]);
    watching.next_line_with("function-runner 9.9.9");
    drop(runner);
    let trouble = watching.next_line_with("retrying");
    assert!(trouble.contains(&address.to_string()), "{trouble}");
    let _restarted = reporting_runner_at(address);
    watching.next_line_with("function-runner 9.9.9");
    assert_eq!(watching.end(Signal::INT), Some(0));
}

#[test]
fn prints_one_json_document_per_line_in_a_watch() {
    let runner = reporting_runner();
    let watching = Watching::start(runner.address(), &["-o", "json"]);
    for _ in 0..3 {
        let document: serde_json::Value =
            serde_json::from_str(&watching.next_line_with("")).unwrap();
        assert_eq!(document["version"], "9.9.9");
    }
    drop(runner);
    let trouble: serde_json::Value =
        serde_json::from_str(&watching.next_line_with("error")).unwrap();
    assert!(trouble["error"].is_string(), "{trouble}");
    assert_eq!(watching.end(Signal::TERM), Some(0));
}

#[test]
fn ends_a_watch_when_its_output_is_closed() {
    let runner = reporting_runner();
    let mut child = watch_command(runner.address()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(wait_for_end(&mut child).code(), Some(0));
}

#[test]
fn distinguishes_an_older_runner_from_an_unreachable_one() {
    let older = FakeRunner::start(Function::identity());
    let run = krm(&["status", "--address", &older.address().to_string()], "");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("does not offer the service krm.status.v1.RunnerStatus")
            && run.stderr.contains("hint: upgrade"),
        "{}",
        run.stderr
    );
    let run = krm(&["status", "--address", "127.0.0.1:1"], "");
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("cannot reach a function runner"),
        "{}",
        run.stderr
    );
    let run = krm(&["status", "--watch", "--address", "nonsense"], "");
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn shows_the_watch_flag_in_the_help() {
    let run = krm(&["status", "--help"], "");
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("krm status --watch"), "{}", run.stdout);
    // Flags for evaluations are not shown.
    assert!(!run.stdout.contains("--max-message-size"), "{}", run.stdout);
}
