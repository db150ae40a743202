//! `cargo xtask crds`: writes the custom resource definitions, generated from their Rust types.

use std::fs;

use anyhow::{Context, Result};
use clap::Args;
use runner_cluster::objects::crd_documents;
use runner_devtools::{failure, root};

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
        let directory = root().join("deploy/crds");
        for (name, text) in crd_documents() {
            let file = directory.join(name);
            if self.check {
                let found = fs::read_to_string(&file).unwrap_or_default();
                if found != text {
                    return Err(failure(
                        format!("deploy/crds/{name} differs from the types it is written from"),
                        "run: cargo xtask crds",
                    ));
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
