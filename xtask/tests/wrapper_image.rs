//! Builds and pushes the wrapper's image with `cargo xtask` and reads it with skopeo.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use runner_registry::{Keychain, Options, Registry};
use runner_test_support::registry::DockerRegistry;
use serde_json::Value;

/// Returns only the ELF header of a static program for a machine.
fn program(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = machine;
    bytes
}

fn binaries(directory: &Path) {
    for (architecture, machine) in [("amd64", 62), ("arm64", 183)] {
        let directory = directory.join(architecture);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("wrapper-server"), program(machine)).unwrap();
    }
}

fn xtask(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["image", "wrapper"])
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn skopeo(arguments: &[&str]) -> Value {
    let output = Command::new("skopeo")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run skopeo, of Debian's package skopeo: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn writes_a_layout_that_skopeo_reads() {
    let (programs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    binaries(programs.path());
    let (programs, directory) = (
        programs.path().to_str().unwrap(),
        out.path().to_str().unwrap(),
    );
    xtask(&["--binaries", programs, "--out", directory]);
    let layout = format!("oci:{directory}:latest");
    for architecture in ["amd64", "arm64"] {
        let seen = skopeo(&[
            "--override-arch",
            architecture,
            "inspect",
            "--config",
            &layout,
        ]);
        assert_eq!(seen["architecture"], architecture, "{seen}");
        assert_eq!(seen["created"], "2023-11-14T22:13:20Z", "{seen}");
        assert_eq!(seen["config"]["User"], "10001", "{seen}");
        let entrypoint = &seen["config"]["Entrypoint"];
        assert_eq!(
            entrypoint[0], "/home/nonroot/wrapper-server/wrapper-server",
            "{seen}"
        );
        let title = &seen["config"]["Labels"]["org.opencontainers.image.title"];
        assert_eq!(title, "wrapper-server", "{seen}");
    }
    let copy = out.path().join("copy");
    skopeo(&["copy", "--all", &layout, &format!("dir:{}", copy.display())]);
}

#[test]
fn writes_the_same_bytes_twice() {
    let (programs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    binaries(programs.path());
    let programs = programs.path().to_str().unwrap();
    let digest = |directory: &str| {
        let directory = out.path().join(directory);
        let output = xtask(&["--binaries", programs, "--out", directory.to_str().unwrap()]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.rsplit_once('@').unwrap().1.to_owned()
    };
    assert_eq!(digest("one"), digest("two"));
}

#[test]
fn pushes_to_a_registry() {
    let (programs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    binaries(programs.path());
    let server = DockerRegistry::start();
    let image = format!("{}/tools/wrapper-server:v1", server.host());
    let (programs, out) = (
        programs.path().to_str().unwrap(),
        out.path().to_str().unwrap(),
    );
    xtask(&["--binaries", programs, "--out", out, "--push", &image]);
    let options = Options {
        platform: "linux/arm64".parse().unwrap(),
        keychain: Keychain::empty(),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let found = runtime.block_on(async {
        let registry = Registry::new(options).unwrap();
        registry
            .inspect(&image.parse().unwrap(), None, None)
            .await
            .unwrap()
    });
    assert_eq!(
        found.entrypoint,
        ["/home/nonroot/wrapper-server/wrapper-server"]
    );
    assert_eq!(
        (found.user.as_str(), found.platform.to_string().as_str()),
        ("10001", "linux/arm64")
    );
}

#[test]
fn refuses_a_program_for_another_machine_in_two_lines() {
    let programs = tempfile::tempdir().unwrap();
    binaries(programs.path());
    fs::write(programs.path().join("arm64/wrapper-server"), program(62)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["image", "wrapper", "--binaries"])
        .arg(programs.path())
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    let [cause, remedy] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    assert!(cause.starts_with("error: "), "{printed}");
    assert!(
        cause.ends_with("it is for machine 62, not for Aarch64"),
        "{printed}"
    );
    assert!(remedy.contains("--binaries"), "{printed}");
}
