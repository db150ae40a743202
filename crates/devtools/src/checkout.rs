//! The checkout that the calling program was built from: its directories, set-up and builds.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::{Remedy, failure, require_success};

/// Returns the root directory of the checkout.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate is two directories below the root")
}

/// Returns the directory for build results: `CARGO_TARGET_DIR`, or `target` in the checkout.
#[must_use]
pub fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(
        || root().join("target"),
        |directory| root().join(PathBuf::from(directory)),
    )
}

/// Returns the architecture of this machine as images name it, such as `amd64`.
#[must_use]
pub fn architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns the Rust target for static programs on this machine's architecture.
#[must_use]
pub fn static_triple() -> String {
    format!("{}-unknown-linux-musl", env::consts::ARCH)
}

/// Returns a command that runs cargo in the root of the checkout.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Installs everything that a purpose of `scripts/setup`, such as `targets`, needs.
///
/// This is quick if nothing is missing.
///
/// # Errors
///
/// Returns an error if a requirement is missing and cannot be installed; `scripts/setup` has then
/// printed cause and remedy.
pub fn setup(purpose: &str) -> Result<()> {
    let status = Command::new(root().join("scripts/setup"))
        .arg(purpose)
        .stdin(Stdio::null())
        // Standard output is for the caller's own result.
        .stdout(Stdio::null())
        .status()
        .context("cannot run scripts/setup")
        .remedy("check that the checkout is complete: git status")?;
    require_success("scripts/setup", status)
}

/// Builds a Go module of the checkout with `scripts/go-build`, which prints its progress.
///
/// `output` is a file, or a directory if it ends with a slash. `target` is `.` for the module's
/// main package or `tool` for the tools that its `go.mod` names.
///
/// # Errors
///
/// Returns an error if Go is missing or the build fails.
pub fn go_build(module: &Path, output: &Path, target: &str) -> Result<()> {
    let status = Command::new(root().join("scripts/go-build"))
        .arg(module)
        .arg(output)
        .arg(target)
        .stdin(Stdio::null())
        .status()
        .context("cannot run scripts/go-build")
        .remedy("check that the checkout is complete: git status")?;
    if !status.success() {
        return Err(failure(
            format!("go build in {} failed: {status}", module.display()),
            "see the error of Go above; `scripts/setup tests` checks the version of Go",
        ));
    }
    Ok(())
}
