//! Tests of failed starts: one line of error, an exit code, and never a listening port.

use std::{
    fs,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::Instant,
};

use runner_test_support::{LIMIT, free_address, wait_for_end};

use crate::support::{Root, Setup, wrapper_server};

/// Returns the error message of a wrapper that exits with this code.
fn error(setup: Setup, code: i32) -> String {
    let ended = setup.refuses();
    assert_eq!(ended.code, Some(code), "{ended:?}");
    ended.message("wrapper-server").to_owned()
}

#[test]
fn names_a_missing_entrypoint() {
    let file = error(Setup::new(&["/no/such/function"]), 127);
    assert!(file.contains("/no/such/function does not exist"), "{file}");
    let setup = Setup::new(&["no-such-function"]).env("PATH", "/nowhere:/bin");
    let name = error(setup, 127);
    assert!(
        name.contains("no directory of PATH (/nowhere:/bin)"),
        "{name}"
    );
}

#[test]
fn rejects_an_entrypoint_that_is_not_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for (entrypoint, why) in [(file.as_path(), "mode"), (directory.path(), "directory")] {
        let error = error(Setup::new(&[entrypoint]), 126);
        assert!(error.contains("is not executable"), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn rejects_an_entrypoint_of_another_user() {
    let root = Root::empty();
    let function = root.at("/function");
    fs::write(&function, "#!/bin/sh\ncat\n").unwrap();
    fs::set_permissions(&function, fs::Permissions::from_mode(0o700)).unwrap();
    let setup = Setup::new(&[&function])
        .nobody()
        .program(root.at("/wrapper-server"));
    let error = error(setup, 126);
    assert!(error.contains("is not executable"), "{error}");
}

#[test]
fn rejects_an_empty_entrypoint() {
    for entrypoint in [&[][..], &[""]] {
        let error = error(Setup::new(entrypoint), 2);
        assert!(error.contains("entrypoint is missing"), "{error}");
    }
}

#[test]
fn names_an_invalid_flag() {
    for (flag, says) in [
        ("--colour", "unknown flag --colour"),
        ("--port=x", "malformed value \"x\" of flag --port"),
        ("--standby=-1", "malformed value \"-1\" of flag --standby"),
        ("cat", "unexpected argument \"cat\""),
    ] {
        let error = error(Setup::script("cat").flag(flag), 2);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn names_a_port_that_is_in_use() {
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for address in [everywhere, loopback] {
        let taken = TcpListener::bind(address).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = error(Setup::script("cat").flag(format!("--port={port}")), 1);
        assert!(error.contains("cannot listen on"), "{error}");
        assert!(error.contains(&format!("port {port}: ")), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn warns_about_unsupported_telemetry() {
    let wrapper = Setup::script("cat")
        .env("OTEL_METRICS_EXPORTER", "console")
        .env("OTEL_TRACES_EXPORTER", "otlp")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector")
        .start()
        .await;
    wrapper
        .logged("OTEL_METRICS_EXPORTER: \"console\" is not supported")
        .await;
    wrapper.logged("traces are not exported").await;
}

#[test]
fn never_listens_if_it_cannot_serve() {
    let address = free_address();
    let mut child = Command::new(wrapper_server())
        .args(["--port", &address.port().to_string(), "--", "/no/such"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let limit = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() && Instant::now() < limit {
        assert!(std::net::TcpStream::connect(address).is_err());
    }
    assert_eq!(wait_for_end(&mut child).code(), Some(127));
}

#[test]
fn prints_help_and_version_to_standard_output() {
    for (flag, says) in [
        ("--help", "-- ENTRYPOINT"),
        ("-version", "wrapper-server 0."),
    ] {
        let output = Command::new(wrapper_server()).arg(flag).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(says), "{text}");
    }
}
