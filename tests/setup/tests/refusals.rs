//! Runs `scripts/setup` on machines that lack something it cannot install.
//!
//! It must fail at once, with one line of cause and one line of remedy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use runner_devtools::static_triple;
use setup_tests::{FreshHome, Toolchain};
use tempfile::TempDir;

/// An address that refuses connections, so that downloads fail at once.
const NO_SERVER: &str = "http://127.0.0.1:1";

/// A home directory and the other files of a test, removed at its end.
struct Machine {
    home: FreshHome,
    directory: TempDir,
}

// === impl Machine ===

impl Machine {
    fn new() -> Self {
        // Hard links to the toolchain are more often possible from the target directory than from
        // /tmp, which may be another file system.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = FreshHome::create(&directory.path().join("home")).unwrap();
        Self { home, directory }
    }

    fn with_bare_toolchain() -> (Self, PathBuf) {
        let machine = Self::new();
        let toolchain = Toolchain::of_checkout().unwrap();
        let toolchain = machine.home.add_toolchain(&toolchain).unwrap();
        (machine, toolchain)
    }

    /// Runs the set-up for a purpose, requires that it fails, and returns cause and remedy.
    fn refusal(&self, purpose: &str) -> (String, String) {
        refusal(self.home.command("scripts/setup").arg(purpose))
    }

    /// Replaces a program of the machine with a script.
    fn replace(&self, program: &str, script: &str) {
        self.remove(program);
        let path = self.home.programs().join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn remove(&self, program: &str) {
        let _ = fs::remove_file(self.home.programs().join(program));
    }
}

/// Runs a command that must fail, and returns the cause and the remedy from its last two lines.
fn refusal(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{printed}");
    let lines: Vec<&str> = printed.lines().collect();
    let [.., cause, remedy] = &lines[..] else {
        panic!("{printed:?}");
    };
    let cause = cause.strip_prefix("error: ");
    let remedy = remedy.strip_prefix(" help: ");
    (
        cause.unwrap_or_else(|| panic!("{printed}")).to_owned(),
        remedy.unwrap_or_else(|| panic!("{printed}")).to_owned(),
    )
}

#[test]
fn names_rustup_where_rust_is_missing() {
    let machine = Machine::new();
    let path = [machine.home.programs()];
    let mut setup = machine.home.command_with_path("scripts/setup", &path);
    let (cause, remedy) = refusal(setup.arg("build"));
    assert_eq!(cause, "Rust is not installed");
    assert!(remedy.contains("https://rustup.rs"), "{remedy}");
}

#[test]
fn names_the_targets_that_a_toolchain_without_rustup_lacks() {
    let (machine, toolchain) = Machine::with_bare_toolchain();
    let path = [toolchain.join("bin"), machine.home.programs()];
    let mut setup = machine.home.command_with_path("scripts/setup", &path);
    let (cause, remedy) = refusal(setup.arg("targets"));
    assert!(cause.contains(&static_triple()), "{cause}");
    assert!(remedy.contains("https://rustup.rs"), "{remedy}");
}

#[test]
fn names_the_command_that_adds_a_target_where_the_download_fails() {
    let (machine, _) = Machine::with_bare_toolchain();
    let mut setup = machine.home.command("scripts/setup");
    let (cause, remedy) = refusal(setup.arg("targets").env("RUSTUP_DIST_SERVER", NO_SERVER));
    assert!(cause.contains("cannot add target"), "{cause}");
    let command = format!("rustup target add {}", static_triple());
    assert!(remedy.contains(&command), "{remedy}");
}

#[test]
fn names_the_command_that_installs_the_toolchain_where_the_download_fails() {
    let machine = Machine::new();
    let mut setup = machine.home.command("scripts/setup");
    let (cause, remedy) = refusal(setup.arg("build").env("RUSTUP_DIST_SERVER", NO_SERVER));
    assert!(cause.contains("cannot install Rust"), "{cause}");
    assert!(remedy.contains("rustup toolchain install"), "{remedy}");
}

#[test]
fn names_the_needed_version_where_go_is_missing_or_old() {
    let (machine, _) = Machine::with_bare_toolchain();
    machine.remove("go");
    let (cause, remedy) = machine.refusal("testbed");
    assert_eq!(cause, "Go is not installed");
    assert!(remedy.contains("https://go.dev/dl"), "{remedy}");

    machine.replace(
        "go",
        r#"case $1 in env) echo go1.19.8 ;; *) echo "go version go1.19.8 linux/amd64" ;; esac"#,
    );
    let (cause, _) = machine.refusal("testbed");
    assert!(cause.starts_with("Go is version 1.19.8;"), "{cause}");

    machine.replace("go", "echo not Go");
    let (cause, _) = machine.refusal("testbed");
    assert!(cause.ends_with("does not say its version"), "{cause}");
}

#[test]
fn names_the_packages_to_install_as_root() {
    let (machine, _) = Machine::with_bare_toolchain();
    machine.remove("cc");
    machine.replace("apt-get", "echo apt-get must not run >&2; exit 1");
    machine.replace("id", "echo 1000");
    let (cause, remedy) = machine.refusal("build");
    assert_eq!(cause, "missing Debian packages: gcc");
    assert_eq!(remedy, "sudo apt-get install --no-install-recommends gcc");
}

#[test]
fn refuses_where_there_is_no_apt() {
    let (machine, _) = Machine::with_bare_toolchain();
    machine.remove("cc");
    machine.remove("apt-get");
    let (cause, remedy) = machine.refusal("build");
    assert!(cause.ends_with("Debian's packages: gcc"), "{cause}");
    assert!(remedy.contains("package manager"), "{remedy}");
}

#[test]
fn lists_the_purposes_for_an_unknown_one() {
    let (cause, remedy) = Machine::new().refusal("tets");
    assert!(cause.contains("unknown purpose tets"), "{cause}");
    assert!(remedy.contains("|tests|"), "{remedy}");
}

/// The set-up finds requirements that it cannot install before it installs anything.
#[test]
fn installs_nothing_if_it_will_fail() {
    let machine = Machine::new();
    machine.remove("go");
    let (cause, _) = machine.refusal("tests");
    assert_eq!(cause, "Go is not installed");
    let rustup = machine.directory.path().join("home/.rustup");
    assert!(!rustup.join("toolchains").exists());
}
