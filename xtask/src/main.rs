//! Development tasks of the project; see `cargo xtask --help`.

mod command_line;
mod crds;
mod dashboard;
mod image;
mod layers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of the project
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
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
    /// Build the wrapper as in its image, and print its path.
    Wrapper(image::WrapperProgram),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Completions(completions) => completions.run(),
        Task::Crds(crds) => crds.run(),
        Task::Dashboard(dashboard) => dashboard.run(),
        Task::Image(image) => image.run(),
        Task::Layers(layers) => layers.run(),
        Task::Man(man) => man.run(),
        Task::Wrapper(wrapper) => wrapper.run(),
    };
    let remedy = "check that the checkout is complete (git status) and its disk is not full (df)";
    runner_devtools::exit_code(result, remedy)
}
