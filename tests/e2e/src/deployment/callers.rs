//! Clients that call for as long as a test likes: Go's own gRPC, as Porch has it.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::wait::LIMIT;

/// Callers at work; they end with this value.
pub struct Callers {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

// === impl Callers ===

impl Callers {
    /// Starts so many, each with a connection of its own, and waits until each was answered.
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

    /// Lets the last calls finish; returns what there is to say about all of them.
    pub async fn finish(self) -> String {
        let Self {
            mut child,
            stdin,
            mut stdout,
        } = self;
        drop(stdin);
        let mut said = String::new();
        let read = tokio::time::timeout(LIMIT, stdout.read_to_string(&mut said)).await;
        read.expect("the callers end")
            .expect("the callers can be read");
        child.wait().await.expect("the callers end");
        said
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
