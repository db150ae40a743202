//! Builds a program for every platform an image is made for.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;

use super::{
    compiler,
    elf::{self, Machine},
};

/// A program for one platform.
pub(crate) struct Program {
    pub(crate) architecture: Architecture,
    pub(crate) bytes: Vec<u8>,
}

/// A machine that images are made for, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    Amd64,
    Arm64,
}

/// What to build a program from, and how.
pub(crate) struct Source<'a> {
    /// The program, which is its package's name too.
    pub(crate) name: &'a str,
    pub(crate) profile: &'a str,
    /// Whether C is part of it.
    pub(crate) c: bool,
    /// A directory with programs built before.
    pub(crate) built: Option<&'a Path>,
}

// === impl Architecture ===

impl Architecture {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    pub(crate) fn of_this_machine() -> anyhow::Result<Self> {
        match env::consts::ARCH {
            "x86_64" => Ok(Self::Amd64),
            "aarch64" => Ok(Self::Arm64),
            other => bail!("images are not made for {other}"),
        }
    }

    fn machine(self) -> Machine {
        match self {
            Self::Amd64 => Machine::X86_64,
            Self::Arm64 => Machine::Aarch64,
        }
    }
}

// === impl Source ===

impl Source<'_> {
    /// Builds the program for a platform, or takes it from the directory.
    pub(crate) fn program(&self, architecture: Architecture) -> anyhow::Result<Program> {
        let path = match self.built {
            Some(directory) => directory.join(architecture.name()).join(self.name),
            None => self.build(architecture)?,
        };
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        elf::check(&bytes, architecture.machine())
            .with_context(|| format!("{} cannot go into the image", path.display()))?;
        Ok(Program {
            architecture,
            bytes,
        })
    }

    /// Builds the program, and says where it lies.
    pub(crate) fn build(&self, architecture: Architecture) -> anyhow::Result<PathBuf> {
        let triple = architecture.triple();
        let Self { name, profile, .. } = self;
        let root = root()?;
        // Flags of its own would make ordinary builds and these undo each other.
        let directory = root.join("target/image");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(&root)
            .args(["build", "--locked", "--package", name])
            .args(["--profile", profile, "--target", triple])
            .arg("--target-dir")
            .arg(&directory)
            // Added to the flags of .cargo/config.toml, which variables would replace.
            .arg("--config")
            .arg(format!("target.{triple}.rustflags=[{}]", remapped(&root)?))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        if *profile == DEVELOPMENT {
            // As in a release: no unwind tables, and no symbols for every node to pull.
            cargo.args(["--config", r#"profile.dev.panic="abort""#]);
            cargo.args(["--config", r#"profile.dev.strip="symbols""#]);
        }
        if self.c {
            cargo.envs(compiler::variables(&root, triple)?);
        }
        let status = cargo.status().context("cannot run cargo")?;
        if !status.success() {
            bail!("cannot build {name} for {triple}");
        }
        let profile = match *profile {
            DEVELOPMENT => "debug",
            other => other,
        };
        Ok(directory.join(triple).join(profile).join(name))
    }
}

/// The profile of ordinary builds, whose directory has another name.
pub(crate) const DEVELOPMENT: &str = "dev";

/// The root of the checkout.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .map(Path::to_owned)
        .context("xtask lies in no workspace")
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
