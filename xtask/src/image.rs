//! `cargo xtask image …`: builds container images into a directory or a registry.

mod binary;
mod compiler;
mod elf;
mod origin;
mod publish;
mod roots;
mod runner;
mod sbom;
mod wrapper;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use runner_core::ImageReference;
use runner_image::Index;

use binary::{Architecture, DEV_PROFILE, Program, Source};
use origin::Origin;

/// Cargo profile of the runner, which favours latency over size.
const RUNNER_PROFILE: &str = "release";

/// The wrapper program.
///
/// It is in every function pod, so its profile favours small size over everything but latency.
const WRAPPER: Source<'_> = Source {
    name: "wrapper-server",
    profile: "tiny",
    has_c_code: false,
    prebuilt: None,
};

/// An image of the project.
#[derive(Subcommand)]
pub(crate) enum Image {
    /// The runner itself, with the probe and directories that deployments name.
    Runner(RunnerArguments),
    /// The image that brings the wrapper into function pods: one static binary under three names.
    Wrapper(Destination),
    /// Both, as layouts in target/images.
    All,
}

/// The settings of the runner's image.
#[derive(Args)]
pub(crate) struct RunnerArguments {
    #[command(flatten)]
    destination: Destination,
    /// Profile to build the runner with; `dev` is quick to build, large and slow.
    #[arg(long, value_name = "PROFILE", default_value = RUNNER_PROFILE)]
    profile: String,
}

/// The source of the programs and the destination of the image.
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
    /// Architectures to build for.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "amd64,arm64")]
    architectures: Vec<Architecture>,
}

/// The architecture of the wrapper to build.
#[derive(Args)]
pub(crate) struct WrapperProgram {
    /// Architecture to build for [default: that of this machine].
    #[arg(long, value_enum)]
    architecture: Option<Architecture>,
}

// === impl WrapperProgram ===

impl WrapperProgram {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let architecture = match self.architecture {
            Some(architecture) => architecture,
            None => Architecture::of_host()?,
        };
        println!("{}", WRAPPER.build(architecture)?.display());
        Ok(())
    }
}

// === impl Image ===

impl Image {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let origin = Origin::from_checkout()?;
        match self {
            Self::Runner(arguments) => arguments.run(&origin),
            Self::Wrapper(destination) => destination.pack_wrapper(&origin),
            Self::All => {
                Destination::default().pack_wrapper(&origin)?;
                RunnerArguments::default().run(&origin)
            }
        }
    }
}

// === impl RunnerArguments ===

impl Default for RunnerArguments {
    fn default() -> Self {
        Self {
            destination: Destination::default(),
            profile: RUNNER_PROFILE.to_owned(),
        }
    }
}

impl RunnerArguments {
    fn run(&self, origin: &Origin) -> anyhow::Result<()> {
        let programs = self
            .destination
            .for_each_architecture(|architecture| self.programs(architecture))?;
        let limited = self.profile != DEV_PROFILE;
        let index = runner::index(&programs, origin, limited)?;
        let parts = ["function-runner", "wrapper-server"];
        self.destination
            .publish(runner::TITLE, &parts, &index, origin)
    }

    fn programs(&self, architecture: Architecture) -> anyhow::Result<runner::Programs> {
        let runner = Source {
            name: "function-runner",
            profile: &self.profile,
            has_c_code: true,
            prebuilt: self.destination.binaries.as_deref(),
        };
        Ok(runner::Programs {
            runner: runner.program(architecture)?,
            wrapper: self.destination.wrapper(architecture)?,
        })
    }
}

// === impl Destination ===

impl Default for Destination {
    fn default() -> Self {
        Self {
            out: None,
            push: None,
            insecure_registry: Vec::new(),
            binaries: None,
            architectures: vec![Architecture::Amd64, Architecture::Arm64],
        }
    }
}

impl Destination {
    fn pack_wrapper(&self, origin: &Origin) -> anyhow::Result<()> {
        let programs = self.for_each_architecture(|architecture| self.wrapper(architecture))?;
        let index = wrapper::index(&programs, origin)?;
        self.publish(wrapper::TITLE, &["wrapper-server"], &index, origin)
    }

    /// Writes the image and, beside it, its bill of materials (SBOM).
    fn publish(
        &self,
        name: &str,
        parts: &[&str],
        index: &Index,
        origin: &Origin,
    ) -> anyhow::Result<()> {
        let sbom = sbom::document(name, parts, &self.architectures, origin)?;
        publish::publish(name, index, &sbom, self)
    }

    fn for_each_architecture<T>(
        &self,
        build: impl Fn(Architecture) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        self.architectures.iter().copied().map(build).collect()
    }

    fn wrapper(&self, architecture: Architecture) -> anyhow::Result<Program> {
        let wrapper = Source {
            prebuilt: self.binaries.as_deref(),
            ..WRAPPER
        };
        wrapper.program(architecture)
    }
}
