//! The command line: one module for each subcommand.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::{doctor, eval, failure::Failure, functions, image, status, version};

/// Run KRM functions over packages of Kubernetes resources
#[derive(Debug, Parser)]
#[command(name = "krm", version = runner_version::LINE, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the completion script of a shell
    ///
    /// For bash: krm completions bash > ~/.local/share/bash-completion/completions/krm
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    // Boxed, because the many flags of `Doctor` would make every variant as large.
    Doctor(Box<doctor::Doctor>),
    Eval(eval::Eval),
    Functions(functions::Functions),
    Image(image::Image),
    Status(status::Status),
    /// Show version, commit and build of this program
    Version,
}

// === impl Cli ===

impl Cli {
    /// Runs the chosen subcommand.
    ///
    /// # Errors
    /// Returns the failure to report, with its exit code.
    pub async fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "krm", &mut std::io::stdout());
                Ok(())
            }
            Command::Doctor(doctor) => doctor.run().await,
            Command::Eval(eval) => eval.run().await,
            Command::Functions(functions) => functions.run().await,
            Command::Image(image) => image.run().await,
            Command::Status(status) => status.run().await,
            Command::Version => version::run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
