//! `krm eval`: runs one function over a package and shows or writes the changes.

mod input;
mod output;

use std::{path::PathBuf, time::Instant};

use bytes::Bytes;
use clap::Args;
use runner_client::EvaluateFunctionRequest;

use crate::{connection::Connection, failure::Failure};

/// Run a function over a package and show the changes
///
/// Sends the resources of the package to the function runner and shows the changes as a diff. With
/// --in-place, the changes are written to the files: a line whose meaning does not change keeps its
/// bytes, including comments and quotes, and either all files are written or none.
///
/// The package consists of all files *.yaml, *.yml, *.json and Kptfile in DIR and its
/// subdirectories that contain resources and are not excluded by .krmignore.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Eval {
    /// Image of the function
    #[arg(long, short = 'I', value_name = "IMAGE")]
    image: String,

    /// Directory of the package [default: the current directory], or - to read a ResourceList from
    /// standard input and write the resulting one to standard output; after it, the function
    /// configuration as data of a ConfigMap
    // One list for clap, because only the value distinguishes a directory from a pair. The help
    // shows two arguments.
    #[arg(value_name = "DIR] [KEY=VALUE")]
    arguments: Vec<String>,

    /// Tag of the image, or a semver constraint that selects one, such as '>=0.4.0 <0.5.0'
    #[arg(
        long,
        value_name = "TAG",
        default_value = "",
        hide_default_value = true
    )]
    tag: String,

    /// File with the function configuration, a single resource
    #[arg(long, value_name = "FILE")]
    fn_config: Option<PathBuf>,

    /// Write the changes to the package
    #[arg(long, short = 'i')]
    in_place: bool,

    /// Only show the changes; this is the default
    #[arg(long, conflicts_with = "in_place")]
    dry_run: bool,

    /// Write the resulting ResourceList to a file, or to standard output (-); all other output then
    /// goes to standard error
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "in_place")]
    output: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  # Show the changes that a function would make to the package in this directory
  krm eval --image example.com/functions/set-label:v0.1.0 . label=tier value=web

  # Write the changes
  krm eval --in-place --image example.com/functions/set-label:v0.1.0 . label=tier value=web

  # Check a package; the exit code is 1 if the function reports an error
  krm eval --image example.com/functions/require-namespace:v0.1.0 ./package

  # Chain functions with pipes
  krm eval -I set-namespace:v0.4.1 -o - . namespace=shop | krm eval -I kubeconform:v0.1.1 -

Exit codes:
  0  the function succeeded and reported no error
  1  the function failed or reported an error, or the package cannot be read or written
  2  the command line is invalid
  3  the function runner cannot be reached";

// === impl Eval ===

impl Eval {
    /// Evaluates the function and shows or writes its output.
    ///
    /// # Errors
    /// Returns a failure if any step fails or the function reports an error.
    pub async fn run(&self) -> Result<(), Failure> {
        let input = input::Input::read(self)?;
        let started = Instant::now();
        let request = EvaluateFunctionRequest {
            image: self.image.clone(),
            tag: self.tag.clone(),
            resource_list: Bytes::from(input.list()?),
            ..EvaluateFunctionRequest::default()
        };
        let answer = self.connection.evaluate(request).await?;
        output::Output {
            eval: self,
            input: &input,
            answer: &answer,
            took: started.elapsed(),
        }
        .show()
    }
}
