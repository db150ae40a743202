//! Runs kubectl on the test bed, in the root of the project.

use std::process::{Command, Stdio};

use anyhow::Result;
use testbed::Testbed;
use tokio::io::AsyncWriteExt;

/// Returns a kubectl command without arguments.
pub(super) fn command(bed: &Testbed) -> Result<Command> {
    let mut command = Command::new(bed.kube()?);
    command
        .arg("kubectl")
        .env("KUBECONFIG", bed.kubeconfig())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Ok(command)
}

/// Runs kubectl, requires success and returns its output.
pub(super) async fn kubectl(bed: &Testbed, arguments: &[&str], input: Option<&str>) -> String {
    let command = command(bed).expect("kubectl is built");
    let mut child = tokio::process::Command::from(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("kubectl starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let written = stdin.write_all(input.unwrap_or_default().as_bytes()).await;
    written.expect("kubectl reads its input");
    drop(stdin);
    let output = child.wait_with_output().await.expect("kubectl ends");
    assert!(
        output.status.success(),
        "kubectl {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Prints the description and logs of pods, to explain a failed test.
pub(super) fn report(bed: &Testbed, namespace: &str, label: &str) {
    eprintln!("=== pods with {label} in {namespace} ===");
    for arguments in [
        ["describe", "pods", "--show-events", "-l"].as_slice(),
        &["logs", "--tail=60", "--prefix", "-l"],
    ] {
        if let Ok(mut kubectl) = command(bed) {
            let _ = kubectl
                .args(["--namespace", namespace])
                .args(arguments)
                .arg(label)
                .stdout(std::io::stderr())
                .status();
        }
    }
}
