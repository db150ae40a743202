//! Passes commit, target and compiler of the build to the crate, as environment variables.
//!
//! The commit comes from `RUNNER_COMMIT` (hash and date, for builds from an archive), else from the
//! git checkout, else it is not known. The script runs again only after a commit or a checkout, not
//! in every build.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUNNER_COMMIT");
    let variable = |name| env::var(name).unwrap_or_default();
    let commit = Some(variable("RUNNER_COMMIT")).filter(|commit| !commit.is_empty());
    let commit = commit.or_else(of_checkout);
    let commit = commit.as_deref().unwrap_or("unknown");
    let (target, profile) = (variable("TARGET"), variable("PROFILE"));
    let rustc = output(&variable("RUSTC"), &["--version"]).unwrap_or_default();
    let (hash, date) = commit.split_once(' ').unwrap_or((commit, ""));
    let short = format!("{} {date}", hash.get(..9).unwrap_or(hash));
    let compiler: Vec<&str> = rustc.split(' ').take(2).collect();
    let line = format!(
        "{} ({}, {profile}, {target}, {})",
        env!("CARGO_PKG_VERSION"),
        short.trim_end(),
        compiler.join(" ")
    );
    for (name, value) in [
        ("COMMIT", commit),
        ("TARGET", &target),
        ("PROFILE", &profile),
        ("RUSTC", &rustc),
        ("LINE", &line),
    ] {
        println!("cargo:rustc-env=BUILD_{name}={value}");
    }
}

/// Returns hash and date of the commit that is checked out.
fn of_checkout() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // An archive may be unpacked inside a checkout of another project.
    let top = output("git", &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // The log of HEAD changes with every commit and checkout. Cargo runs the script in every build
    // if a named file does not exist.
    let log = output("git", &["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    output("git", &["log", "-1", "--format=%H %cs"])
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
