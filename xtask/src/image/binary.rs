//! Builds a program for every platform of an image.

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

/// A processor architecture that images are made for, with Go's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    Amd64,
    Arm64,
}

/// The build settings of a program.
pub(crate) struct Source<'a> {
    /// Name of the program and of its package.
    pub(crate) name: &'a str,
    pub(crate) profile: &'a str,
    /// Whether the program contains C code.
    pub(crate) has_c_code: bool,
    /// Directory with programs that were built before; `None` builds the program.
    pub(crate) prebuilt: Option<&'a Path>,
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

    pub(crate) fn of_host() -> anyhow::Result<Self> {
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
    /// Builds the program for a platform, or reads it from the directory `prebuilt`.
    pub(crate) fn program(&self, architecture: Architecture) -> anyhow::Result<Program> {
        let path = match self.prebuilt {
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
        setup(if self.has_c_code { "images" } else { "targets" })?;
        let triple = architecture.triple();
        let Self { name, profile, .. } = self;
        // A separate target directory, because the flags differ and an ordinary build would discard
        // these results.
        let directory = target_directory().join("image");
        let mut cargo = cargo();
        cargo
            .args(["build", "--locked", "--package", name])
            .args(["--profile", profile, "--target", triple])
            .arg("--target-dir")
            .arg(&directory)
            // `--config` adds to the flags of .cargo/config.toml; environment variables would
            // replace them.
            .arg("--config")
            .arg(format!(
                "target.{triple}.rustflags=[{}]",
                path_remap_flags()?
            ))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        if *profile == DEV_PROFILE {
            // As in a release: no unwind tables and no symbols, which every node would have to
            // pull.
            cargo.args(["--config", r#"profile.dev.panic="abort""#]);
            cargo.args(["--config", r#"profile.dev.strip="symbols""#]);
        }
        if self.has_c_code {
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
            DEV_PROFILE => "debug",
            other => other,
        };
        Ok(directory.join(triple).join(profile).join(name))
    }
}

/// The profile of ordinary builds; its output directory is `debug`.
pub(crate) const DEV_PROFILE: &str = "dev";

/// Returns the rustc flags that replace local paths in panic messages.
///
/// Without them the bytes of a program would depend on the paths of the checkout and of cargo's
/// registry.
fn path_remap_flags() -> anyhow::Result<String> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let remap = |from: &Path, to: &str| {
        let from = from.to_str().context("a path is not UTF-8")?;
        ensure!(!from.contains('\''), "a path contains a quote: {from}");
        Ok(format!("'--remap-path-prefix={from}={to}'"))
    };
    Ok([remap(root(), "/src")?, remap(&cargo_home, "/cargo")?].join(", "))
}
