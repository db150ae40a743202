//! Runs set-up and image build on a machine with only Debian, Go and a bare Rust toolchain.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use runner_devtools::{architecture, cargo, static_triple, target_directory};
use setup_tests::{FreshHome, Toolchain};

/// Returns the directory of this test.
///
/// The build results in it stay for the next run; the home directory in it is created anew.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh-machine")
}

/// Runs a command, with its output printed, and requires success.
fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
#[ignore = "downloads and builds for minutes: `make test` runs it as a stage of its own"]
fn builds_an_image_with_a_bare_toolchain() {
    // Built with the developer's own toolchain to save minutes; it needs only what `make run`
    // needs.
    run(cargo().args(["build", "--quiet", "--package", "xtask"]));
    let xtask = target_directory().join("debug/xtask");

    let home = FreshHome::create(&directory().join("home")).unwrap();
    let toolchain = Toolchain::of_checkout().unwrap();
    let toolchain = home.add_toolchain(&toolchain).unwrap();
    let target = toolchain.join("lib/rustlib").join(static_triple());
    assert!(!target.exists(), "the toolchain of this test is not bare");

    // No set-up runs before, because the command runs it. The image contains both programs, so this
    // builds the wrapper too.
    let image = directory().join("function-runner");
    run(home
        .command(xtask)
        .env("CARGO_TARGET_DIR", directory().join("target"))
        .args(["image", "runner", "--profile", "dev"])
        .args(["--architectures", architecture(), "--out"])
        .arg(&image));
    assert!(image.join("index.json").is_file());
    assert!(target.exists());

    run(home.command("scripts/setup").arg("lint"));
    run(home.command("cargo").args(["fmt", "--version"]));
    run(home.command("cargo").args(["clippy", "--version"]));

    // Everything that `make test` needs. The second run finds nothing missing and prints nothing.
    run(&mut home.command("scripts/setup"));
    let again = home.command("scripts/setup").output().unwrap();
    assert!(again.status.success());
    assert_eq!(String::from_utf8_lossy(&again.stderr), "");
}
