//! Tests the function as a process: standard input, standard output and exit code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

fn run(list: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_set-label"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn labels_a_list() {
    let list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n\
                - apiVersion: v1\n  kind: X # kept\n  metadata: {name: x}\n\
                functionConfig: {data: {label: tier, value: web}}\n";
    let output = run(list);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let labelled = list.replace("{name: x}", "{\"labels\": {\"tier\": \"web\"}, name: x}");
    assert!(text.starts_with(&labelled), "{text}");
    assert!(
        text.contains("results:\n- message: \"set tier to web\""),
        "{text}"
    );
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log, "tier=web set on resources: 1\n");
}

#[test]
fn fails_without_a_configuration() {
    let output = run("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.starts_with("set-label: data.label of the functionConfig"),
        "{message}"
    );
}
