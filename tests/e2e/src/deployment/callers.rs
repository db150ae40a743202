//! Clients that call continuously, with Go's gRPC library as in Porch.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::LIMIT;

/// Running callers, which stop when this value is dropped.
pub struct Callers {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

// === impl Callers ===

impl Callers {
    /// Starts this many callers, each with its own connection, and waits for each one's first
    /// response.
    pub async fn start(address: &str, image: &str, callers: usize) -> Self {
        let mut child = Command::new(program().await)
            .arg(format!("-address={address}"))
            .arg(format!("-image={image}"))
            .arg(format!("-callers={callers}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the callers start");
        let stdin = child.stdin.take().expect("a pipe");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        let warm = tokio::time::timeout(LIMIT, stdout.read_line(&mut line)).await;
        warm.expect("every caller is answered")
            .expect("the callers can be read");
        assert_eq!(line, "warm\n");
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// Waits for the last calls and returns the callers' report.
    pub async fn finish(self) -> String {
        let Self {
            mut child,
            stdin,
            mut stdout,
        } = self;
        drop(stdin);
        let mut report = String::new();
        let read = tokio::time::timeout(LIMIT, stdout.read_to_string(&mut report)).await;
        read.expect("the callers end")
            .expect("the callers can be read");
        child.wait().await.expect("the callers end");
        report
    }
}

async fn program() -> String {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/build");
    let output = Command::new(build).args(["--path", "callers"]).output();
    let output = output.await.expect("tests/tools/build can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = String::from_utf8(output.stdout).expect("a path");
    path.trim().to_owned()
}
