//! `krm eval`: runs one function over a package and shows or writes the changes.

mod input;
mod output;

use std::{path::PathBuf, time::Instant};

use bytes::Bytes;
use clap::Args;
use runner_client::EvaluateFunctionRequest;

use crate::{connection::Connection, failure::Failure};

/// Run a function over a package and show what it changes
///
/// The package's resources are sent to the function runner as they are written; what comes back is
/// shown as a diff. With --in-place the files are changed: every line the function did not change
/// in meaning keeps its bytes, comments and quotes included, and either all files are written or
/// none.
///
/// Read are *.yaml, *.yml, *.json and Kptfile, in DIR and the directories below it, as far as they
/// hold resources and .krmignore does not exclude them.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Eval {
    /// The function's image
    #[arg(long, short = 'I', value_name = "IMAGE")]
    image: String,

    /// The package's directory (default: the current one) or - to read a ResourceList from
    /// standard input and write the function's to standard output; then the function's
    /// configuration as a ConfigMap's data
    // One list for clap, because only the value distinguishes a directory from a pair. The help
    // shows two arguments.
    #[arg(value_name = "DIR] [KEY=VALUE")]
    arguments: Vec<String>,

    /// Which of the image's tags to run: a tag, or a constraint such as '>=0.4.0 <0.5.0'
    #[arg(
        long,
        value_name = "TAG",
        default_value = "",
        hide_default_value = true
    )]
    tag: String,

    /// A file with the function's configuration, a single resource
    #[arg(long, value_name = "FILE")]
    fn_config: Option<PathBuf>,

    /// Write the changes to the package; without it they are only shown
    #[arg(long, short = 'i')]
    in_place: bool,

    /// Only show what would change, which is the default
    #[arg(long, conflicts_with = "in_place")]
    dry_run: bool,

    /// Write the function's ResourceList to a file, - for standard output; everything else goes to
    /// standard error then
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "in_place")]
    output: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "\
Examples:
  Show what a function would change in the package of this directory:
    krm eval --image example.com/functions/set-label:v0.1.0 . label=tier value=web

  Change it:
    krm eval --in-place --image example.com/functions/set-label:v0.1.0 . label=tier value=web

  Check a package; the exit code is 1 if the function finds an error:
    krm eval --image example.com/functions/require-namespace:v0.1.0 ./package

  Chain functions through pipes:
    krm eval -I set-namespace:v0.4.1 -o - . namespace=shop | krm eval -I kubeconform:v0.1.1 -

Exit codes:
  0  the function succeeded and reported no error
  1  the function failed or reported an error, or the package cannot be read or written
  2  the command line is wrong
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
