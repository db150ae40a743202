//! Builds a program for every platform an image is made for.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use runner_devtools::{Remedy, cargo, failure, root, setup, target_directory};

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
            other => Err(failure(
                format!("images are not made for {other}"),
                "name another architecture: --architecture amd64 or --architecture arm64",
            )),
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
        let bytes = fs::read(&path)
            .with_context(|| format!("cannot read {}", path.display()))
            .remedy("leave out --binaries to build the programs")?;
        elf::check(&bytes, architecture.machine())
            .with_context(|| format!("{} cannot go into the image", path.display()))
            .remedy(
                "build it as a static program for that architecture, or leave out --binaries",
            )?;
        Ok(Program {
            architecture,
            bytes,
        })
    }

    /// Builds the program and returns its path.
    pub(crate) fn build(&self, architecture: Architecture) -> anyhow::Result<PathBuf> {
        setup(if self.c { "images" } else { "targets" })?;
        let triple = architecture.triple();
        let Self { name, profile, .. } = self;
        // A directory of its own: the flags differ, so ordinary builds would undo this one.
        let directory = target_directory().join("image");
        let mut cargo = cargo();
        cargo
            .args(["build", "--locked", "--package", name])
            .args(["--profile", profile, "--target", triple])
            .arg("--target-dir")
            .arg(&directory)
            // Added to the flags of .cargo/config.toml, which variables would replace.
            .arg("--config")
            .arg(format!("target.{triple}.rustflags=[{}]", remapped()?))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        if *profile == DEVELOPMENT {
            // As in a release: no unwind tables, and no symbols for every node to pull.
            cargo.args(["--config", r#"profile.dev.panic="abort""#]);
            cargo.args(["--config", r#"profile.dev.strip="symbols""#]);
        }
        if self.c {
            cargo.envs(compiler::variables(triple)?);
        }
        let status = cargo.status().context("cannot run cargo")?;
        if !status.success() {
            return Err(failure(
                format!("cannot build {name} for {triple}: cargo ended with {status}"),
                "see the error of cargo above",
            ));
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

/// Messages of panics name source files: without this, the bytes of a program would depend on where
/// the checkout and cargo's registry lie.
fn remapped() -> anyhow::Result<String> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let remap = |from: &Path, to: &str| {
        let from = from.to_str().context("a path is not UTF-8")?;
        ensure!(!from.contains('\''), "a path holds a quote: {from}");
        Ok(format!("'--remap-path-prefix={from}={to}'"))
    };
    Ok([remap(root(), "/src")?, remap(&cargo_home, "/cargo")?].join(", "))
}
