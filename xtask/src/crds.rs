//! `cargo xtask crds`: the definitions of our objects, written from their types.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use clap::Args;
use runner_config::objects::crd_documents;

/// Write the custom resource definitions to deploy/crds
#[derive(Args, Debug)]
pub(crate) struct Crds {
    /// Write nothing; fail if a file is not what would be written
    #[arg(long)]
    check: bool,
}

// === impl Crds ===

impl Crds {
    pub(crate) fn run(&self) -> Result<()> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
        for (name, text) in crd_documents() {
            let file = directory.join(name);
            if self.check {
                let found = fs::read_to_string(&file).unwrap_or_default();
                if found != text {
                    bail!("deploy/crds/{name} is not current: run `cargo xtask crds`");
                }
            } else {
                fs::create_dir_all(&directory).context("cannot make deploy/crds")?;
                fs::write(&file, text)
                    .with_context(|| format!("cannot write deploy/crds/{name}"))?;
            }
        }
        Ok(())
    }
}
