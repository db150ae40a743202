//! The command line: one module for each subcommand.

use clap::{Parser, Subcommand};

use crate::{doctor, eval, failure::Failure, functions, image, status};

/// Run KRM functions over packages of Kubernetes resources
#[derive(Debug, Parser)]
#[command(name = "krm", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // Boxed, because the many flags of `Doctor` would make every variant as large.
    Doctor(Box<doctor::Doctor>),
    Eval(eval::Eval),
    Functions(functions::Functions),
    Image(image::Image),
    Status(status::Status),
}

// === impl Cli ===

impl Cli {
    /// Runs the chosen subcommand.
    ///
    /// # Errors
    /// Returns the failure to report, with its exit code.
    pub async fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Doctor(doctor) => doctor.run().await,
            Command::Eval(eval) => eval.run().await,
            Command::Functions(functions) => functions.run().await,
            Command::Image(image) => image.run().await,
            Command::Status(status) => status.run().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
