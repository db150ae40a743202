//! Development tasks of the project; see `cargo xtask --help`.

mod command_line;
mod crds;
mod dashboard;
mod image;
mod layers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    Completions(command_line::Completions),
    /// Write the custom resource definitions to deploy/crds.
    Crds(crds::Crds),
    /// Write the Grafana dashboard to deploy/observability.
    Dashboard(dashboard::Dashboard),
    /// Build a container image, without a container tool.
    #[command(subcommand)]
    Image(Box<image::Image>),
    /// Check that every library crate depends only on crates of lower floors.
    Layers(layers::Layers),
    Man(command_line::Man),
    /// Build the wrapper as its image holds it, and print where it lies.
    Wrapper(image::WrapperProgram),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Completions(completions) => completions.run(),
        Chore::Crds(crds) => crds.run(),
        Chore::Dashboard(dashboard) => dashboard.run(),
        Chore::Image(image) => image.run(),
        Chore::Layers(layers) => layers.run(),
        Chore::Man(man) => man.run(),
        Chore::Wrapper(wrapper) => wrapper.run(),
    };
    let remedy = "check that the checkout is complete (git status) and its disk is not full (df)";
    runner_devtools::exit_code(result, remedy)
}
