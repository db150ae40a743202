//! The Rust toolchain of this machine, reduced to the components of the smallest installation.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use runner_devtools::root;

use crate::machine::link_or_copy;

/// The components of the smallest installation.
const BARE: [&str; 3] = ["cargo", "rust-std", "rustc"];

/// The toolchain that the checkout pins, as installed on this machine.
pub struct Toolchain {
    sysroot: PathBuf,
    version: String,
    host: String,
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds the pinned toolchain.
    ///
    /// # Errors
    ///
    /// If rustc does not run.
    pub fn of_checkout() -> Result<Self> {
        let rustc = |argument| -> Result<String> {
            let output = Command::new("rustc")
                .arg(argument)
                .current_dir(root())
                .output()
                .context("cannot run rustc")?;
            ensure!(output.status.success(), "rustc {argument} failed");
            Ok(String::from_utf8(output.stdout)?)
        };
        let sysroot = rustc("--print=sysroot")?;
        let about = rustc("-vV")?;
        let field = |name: &str| {
            let value = about.lines().find_map(|line| line.strip_prefix(name));
            value
                .map(str::to_owned)
                .context("rustc -vV says too little")
        };
        Ok(Self {
            sysroot: Path::new(sysroot.trim()).canonicalize()?,
            version: field("release: ")?,
            host: field("host: ")?,
        })
    }

    /// Returns rustup's name for the toolchain.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-{}", self.version, self.host)
    }

    /// Copies the compiler, cargo and the standard library for this machine, without added targets
    /// and components.
    pub(crate) fn copy_bare(&self, to: &Path) -> Result<()> {
        let records = Path::new("lib/rustlib");
        fs::create_dir_all(to.join(records))?;
        let mut components = String::new();
        let mut config = String::from("config_version = \"1\"\n");
        for name in BARE {
            let component = format!("{name}-{}", self.host);
            let manifest = records.join(format!("manifest-{component}"));
            let listed = fs::read_to_string(self.sysroot.join(&manifest))
                .context("the toolchain was not installed by rustup")?;
            for line in listed.lines() {
                // Only the documentation lists directories, and it is not copied.
                let path = line.strip_prefix("file:").context("not a file")?;
                link_or_copy(&self.sysroot.join(path), &to.join(path))?;
            }
            fs::write(to.join(&manifest), listed)?;
            components.push_str(&format!("{component}\n"));
            config.push_str(&format!(
                "\n[[components]]\npkg = \"{name}\"\ntarget = \"{}\"\nis_extension = false\n",
                self.host
            ));
        }
        // Copies instead of links, because rustup writes to these files.
        for record in ["multirust-channel-manifest.toml", "rust-installer-version"] {
            fs::copy(
                self.sysroot.join(records).join(record),
                to.join(records).join(record),
            )?;
        }
        fs::write(to.join(records).join("components"), components)?;
        fs::write(to.join(records).join("multirust-config.toml"), config)?;
        Ok(())
    }
}
