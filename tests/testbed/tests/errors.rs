//! Errors of the command line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::process::Command;

#[test]
fn names_the_command_that_starts_a_test_bed() {
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_testbed"))
        .arg("status")
        .env("XDG_CACHE_HOME", cache.path())
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: no test bed is up\n help: start one: make testbed-up\n"
    );
}
