//! A home directory like that of a machine that never built this project, for tests of
//! `scripts/setup`.
//!
//! `HOME`, `CARGO_HOME` and `RUSTUP_HOME` point into it, so that a developer's own installation
//! cannot hide a missing step. Debian packages and the caches of Go are those of the machine.

mod machine;
mod toolchain;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use runner_devtools::root;

pub use toolchain::Toolchain;

/// Names of rustup's own programs and of those that it replaces by proxies.
const RUST_PROGRAMS: [&str; 9] = [
    "cargo",
    "cargo-clippy",
    "cargo-fmt",
    "clippy-driver",
    "rustc",
    "rustdoc",
    "rustfmt",
    "rustup",
    "rustup-init",
];

/// Variables that point to the developer's own toolchain, build results or caches.
///
/// Variables for the network stay set.
const VARIABLES_OF_DEVELOPER: [&str; 8] = [
    "CARGO",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "XDG_CACHE_HOME",
];

/// A home directory with rustup, and without a toolchain until one is added.
pub struct FreshHome {
    path: PathBuf,
}

// === impl FreshHome ===

impl FreshHome {
    /// Creates the home directory; an earlier one at this path is removed.
    ///
    /// # Errors
    ///
    /// If rustup is not installed on this machine or a file cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        let home = Self {
            path: path.to_owned(),
        };
        machine::link_programs(&home.programs(), &RUST_PROGRAMS)?;
        home.install_rustup()?;
        Ok(home)
    }

    /// Adds a toolchain to rustup's directory.
    ///
    /// # Errors
    ///
    /// If a file cannot be linked or copied.
    pub fn add_toolchain(&self, toolchain: &Toolchain) -> Result<PathBuf> {
        let directory = self.path.join(".rustup/toolchains").join(toolchain.name());
        toolchain.copy_bare(&directory)?;
        Ok(directory)
    }

    /// Returns the directory of links to every program of this machine except those of Rust.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.path.join("programs")
    }

    /// Returns a command that runs in the checkout with this home directory.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let path = [self.path.join(".cargo/bin"), self.programs()];
        self.command_with_path(program, &path)
    }

    /// Returns a command whose `PATH` contains only these directories.
    #[must_use]
    pub fn command_with_path(&self, program: impl AsRef<Path>, path: &[PathBuf]) -> Command {
        // `env` looks the program up in the PATH set below, not in that of this process.
        let mut command = Command::new("/usr/bin/env");
        for variable in VARIABLES_OF_DEVELOPER {
            command.env_remove(variable);
        }
        for (variable, directory) in machine::go_caches() {
            command.env(variable, directory);
        }
        command
            .arg(program.as_ref())
            .current_dir(root())
            .env("HOME", &self.path)
            .env("CARGO_HOME", self.path.join(".cargo"))
            .env("RUSTUP_HOME", self.path.join(".rustup"))
            // As on machines with pinned toolchains, rust-toolchain.toml installs nothing.
            .env("RUSTUP_AUTO_INSTALL", "0")
            .env("RUST_BACKTRACE", "1")
            .env(
                "PATH",
                env::join_paths(path).expect("no colon in the paths"),
            );
        command
    }

    fn install_rustup(&self) -> Result<()> {
        let rustup = machine::find_program("rustup")
            .context("this test needs rustup: install it from https://rustup.rs")?;
        let directory = self.path.join(".cargo/bin");
        fs::create_dir_all(&directory)?;
        for name in RUST_PROGRAMS {
            machine::link_or_copy(&rustup, &directory.join(name))?;
        }
        Ok(())
    }
}
