//! `cargo xtask image …`: builds container images, as a directory or in a registry.

mod binary;
mod compiler;
mod elf;
mod origin;
mod publish;
mod roots;
mod runner;
mod wrapper;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use runner_core::ImageReference;

use binary::{Architecture, DEVELOPMENT, Program, Source};

/// The wrapper sits in every function pod: small before everything but latency.
const WRAPPER_PROFILE: &str = "tiny";

/// The images there are.
#[derive(Subcommand)]
pub(crate) enum Image {
    /// The runner itself, with the probe and directories that deployments name.
    Runner(RunnerArguments),
    /// The image that brings the wrapper into function pods: one static binary under three names.
    Wrapper(Destination),
}

/// What is to be known of the runner's image.
#[derive(Args)]
pub(crate) struct RunnerArguments {
    #[command(flatten)]
    destination: Destination,
    /// Profile to build the runner with; `dev` is quick to build, large and slow.
    #[arg(long, value_name = "PROFILE", default_value = "release")]
    profile: String,
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
    /// Machines to make it for.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "amd64,arm64")]
    architectures: Vec<Architecture>,
}

// === impl Image ===

impl Image {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let origin = origin::Origin::of_checkout()?;
        match self {
            Self::Runner(arguments) => {
                let destination = &arguments.destination;
                let programs = destination.each(|architecture| arguments.programs(architecture))?;
                let limited = arguments.profile != DEVELOPMENT;
                let index = runner::index(&programs, &origin, limited)?;
                publish::publish(runner::TITLE, &index, destination)
            }
            Self::Wrapper(destination) => {
                let programs =
                    destination.each(|architecture| destination.wrapper(architecture))?;
                let index = wrapper::index(&programs, &origin)?;
                publish::publish(wrapper::TITLE, &index, &destination)
            }
        }
    }
}

// === impl RunnerArguments ===

impl RunnerArguments {
    fn programs(&self, architecture: Architecture) -> anyhow::Result<runner::Programs> {
        let runner = Source {
            name: "function-runner",
            profile: &self.profile,
            c: true,
            built: self.destination.binaries.as_deref(),
        };
        Ok(runner::Programs {
            runner: runner.program(architecture)?,
            wrapper: self.destination.wrapper(architecture)?,
        })
    }
}

// === impl Destination ===

impl Destination {
    fn each<T>(&self, of: impl Fn(Architecture) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
        self.architectures.iter().copied().map(of).collect()
    }

    fn wrapper(&self, architecture: Architecture) -> anyhow::Result<Program> {
        let wrapper = Source {
            name: "wrapper-server",
            profile: WRAPPER_PROFILE,
            c: false,
            built: self.binaries.as_deref(),
        };
        wrapper.program(architecture)
    }
}
