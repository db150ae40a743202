//! `cargo xtask image …`: builds container images, as a directory or in a registry.

mod binary;
mod elf;
mod origin;
mod publish;
mod wrapper;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use runner_core::ImageReference;

/// The images there are.
#[derive(Subcommand)]
pub(crate) enum Image {
    /// The image that brings the wrapper into function pods: one static binary under three names.
    Wrapper(Destination),
}

/// Where programs come from and the image goes.
#[derive(Args)]
pub(crate) struct Destination {
    /// Write an OCI layout into this directory [default: target/images/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Push to a registry too, with the credentials of docker's config.
    #[arg(long, value_name = "IMAGE")]
    push: Option<ImageReference>,
    /// Push without TLS to this registry; loopback needs no such permission.
    #[arg(long, value_name = "HOST")]
    insecure_registry: Vec<String>,
    /// Pack programs built before, from DIR/ARCHITECTURE/PROGRAM, instead of building them.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

// === impl Image ===

impl Image {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Wrapper(destination) => {
                let programs = binary::programs("wrapper-server", destination.binaries.as_deref())?;
                let index = wrapper::index(&programs, &origin::Origin::of_checkout()?)?;
                publish::publish("wrapper-server", &index, &destination)
            }
        }
    }
}
