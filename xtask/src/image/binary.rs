//! Builds a program for every platform an image is made for.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

use super::elf::{self, Machine};

const PROFILE: &str = "tiny";

/// A program for one platform.
pub(crate) struct Program {
    /// In Go's words: `amd64`.
    pub(crate) architecture: &'static str,
    pub(crate) bytes: Vec<u8>,
}

struct Target {
    architecture: &'static str,
    triple: &'static str,
    machine: Machine,
}

const TARGETS: [Target; 2] = [
    Target {
        architecture: "amd64",
        triple: "x86_64-unknown-linux-musl",
        machine: Machine::X86_64,
    },
    Target {
        architecture: "arm64",
        triple: "aarch64-unknown-linux-musl",
        machine: Machine::Aarch64,
    },
];

/// Builds a program for all platforms, or takes it from a directory.
pub(crate) fn programs(name: &str, built: Option<&Path>) -> anyhow::Result<Vec<Program>> {
    let program = |target: &Target| {
        let path = match built {
            Some(directory) => directory.join(target.architecture).join(name),
            None => build(name, target)?,
        };
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        elf::check(&bytes, target.machine)
            .with_context(|| format!("{} cannot go into the image", path.display()))?;
        Ok(Program {
            architecture: target.architecture,
            bytes,
        })
    };
    TARGETS.iter().map(program).collect()
}

/// The root of the checkout.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .map(Path::to_owned)
        .context("xtask lies in no workspace")
}

fn build(name: &str, target: &Target) -> anyhow::Result<PathBuf> {
    let root = root()?;
    // Flags of its own would make ordinary builds and these undo each other.
    let directory = root.join("target/image");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(&root)
        .args(["build", "--locked", "--package", name])
        .args(["--profile", PROFILE, "--target", target.triple])
        .arg("--target-dir")
        .arg(&directory)
        // Added to the flags of .cargo/config.toml, which variables would replace.
        .arg("--config")
        .arg(format!(
            "target.{}.rustflags=[{}]",
            target.triple,
            remapped(&root)?
        ))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cannot build {name} for {}", target.triple);
    }
    Ok(directory.join(target.triple).join(PROFILE).join(name))
}

/// Messages of panics name source files: without this, the bytes of a program would depend on where
/// the checkout and cargo's registry lie.
fn remapped(root: &Path) -> anyhow::Result<String> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let remap = |from: &Path, to: &str| {
        let from = from.to_str().context("a path is not UTF-8")?;
        ensure!(!from.contains('\''), "a path holds a quote: {from}");
        Ok(format!("'--remap-path-prefix={from}={to}'"))
    };
    Ok([remap(root, "/src")?, remap(&cargo_home, "/cargo")?].join(", "))
}
