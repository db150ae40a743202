//! Command line of the test bed: starts and stops a Kubernetes cluster on this machine.

use std::{
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use anyhow::Result;
use clap::{Parser, Subcommand};
use runner_devtools::{exit_code, setup};
use testbed::{Component, Layout, Programs, Testbed};

/// Starts and stops a one-node Kubernetes cluster for the tests
#[derive(Parser)]
#[command(name = "testbed")]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build Kubernetes, CoreDNS and containerd, unless they are already built
    Build,
    /// Start all components that do not run
    Up,
    /// Build the images of the tests and push them to the registries of the test bed
    Images,
    /// Stop all components and remove everything that the test bed created
    Down,
    /// Show which components run; fail unless all of them do
    Status,
    /// Run kubectl against the cluster
    #[command(disable_help_flag = true)]
    Kubectl {
        /// Arguments of kubectl, passed on unchanged
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// The purpose of `scripts/setup` that installs everything for the test bed.
const PURPOSE: &str = "testbed";

fn main() -> ExitCode {
    let remedy =
        "remove the test bed with `make testbed-down`, then start it with `make testbed-up`";
    exit_code(run(Arguments::parse().action), remedy)
}

fn run(action: Action) -> Result<()> {
    let layout = Layout::of_user()?;
    match action {
        Action::Build => {
            setup(PURPOSE)?;
            Programs::build(&layout).map(drop)
        }
        Action::Up => {
            setup(PURPOSE)?;
            let bed = Testbed::up(&layout)?;
            println!("export KUBECONFIG={}", bed.kubeconfig().display());
            Ok(())
        }
        Action::Images => {
            setup(PURPOSE)?;
            testbed::push_images(&Testbed::running_at(&layout)?)
        }
        Action::Down => Testbed::down(&layout),
        Action::Status => status(&Testbed::running_at(&layout)?),
        Action::Kubectl { arguments } => kubectl(&Testbed::running_at(&layout)?, &arguments),
    }
}

fn status(bed: &Testbed) -> Result<()> {
    for component in Component::all() {
        match bed.pid(component)? {
            Some(pid) => println!("{:<24} runs as {pid}", component.name()),
            None => println!("{:<24} does not run", component.name()),
        }
    }
    println!("{:<24} {}", "open registry", bed.open_registry());
    println!("{:<24} {}", "private registry", bed.private_registry().host);
    println!("export KUBECONFIG={}", bed.kubeconfig().display());
    bed.require_complete()
}

fn kubectl(bed: &Testbed, arguments: &[String]) -> Result<()> {
    let error = Command::new(bed.kube()?)
        .arg("kubectl")
        .args(arguments)
        .env("KUBECONFIG", bed.kubeconfig())
        .exec();
    Err(error.into())
}
