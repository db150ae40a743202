//! The client grpcurl, which discovers services by reflection.

use std::{
    net::SocketAddr,
    process::{Command, Output},
};

use runner_devtools::root;

/// Runs grpcurl against a server without TLS until it exits; `words` are the method or a command.
///
/// The program is the one that tests/tools/build has built.
pub async fn grpcurl(address: SocketAddr, flags: &[&str], words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command
        .args(["-plaintext", "-format-error"])
        .args(flags)
        .arg(address.to_string())
        .args(words);
    let output = tokio::task::spawn_blocking(move || command.output());
    output.await.unwrap().unwrap()
}

fn program() -> String {
    let mut build = Command::new(root().join("tests/tools/build"));
    let found = build.args(["--path", "grpcurl"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(found.status.success(), "{}", text(&found.stderr));
    text(&found.stdout)
}
