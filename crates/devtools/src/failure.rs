//! Errors of programs for developers: one line of cause, one line of remedy.

use std::{
    error, fmt,
    process::{ExitCode, ExitStatus},
};

use anyhow::{Error, Result};
use runner_core::with_causes;

/// Attaches a remedy to the error of a result.
pub trait Remedy<T> {
    /// Attaches the command or action that fixes the error; the outermost remedy is printed.
    ///
    /// # Errors
    ///
    /// Returns the error of the result, with the remedy.
    fn remedy(self, remedy: impl Into<String>) -> Result<T>;
}

/// An error with the command or action that fixes it.
#[derive(Debug)]
struct Failure {
    cause: Error,
    remedy: String,
}

/// An error whose cause and remedy a child process has printed.
#[derive(Debug)]
struct AlreadyReported;

/// Returns an error with a remedy.
#[must_use]
pub fn failure(cause: impl fmt::Display, remedy: impl Into<String>) -> Error {
    let cause = anyhow::anyhow!("{cause}");
    let remedy = remedy.into();
    Failure { cause, remedy }.into()
}

/// Checks the exit status of a child process that prints the cause and remedy of its own errors.
///
/// # Errors
///
/// Returns an error if the child process failed. [`exit_code`] prints nothing for this error, unless a signal ended
/// the child process.
pub fn require_success(child: &str, status: ExitStatus) -> Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        Some(_) => Err(AlreadyReported.into()),
        None => Err(failure(
            format!("{child} was ended by a signal: {status}"),
            "run the command again",
        )),
    }
}

/// Turns the result of a program into its exit code.
///
/// An error is printed as two lines without a backtrace: one line with the causes, one with the
/// remedy. `general_remedy` is for errors that have none of their own.
#[must_use]
pub fn exit_code(result: Result<()>, general_remedy: &str) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.chain().any(<dyn error::Error>::is::<AlreadyReported>) {
                eprintln!("{}", report(&error, general_remedy));
            }
            ExitCode::FAILURE
        }
    }
}

/// Returns the two lines that [`exit_code`] prints for an error.
#[must_use]
pub fn report(error: &Error, general_remedy: &str) -> String {
    let remedy = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>())
        .map_or(general_remedy, |failure| &failure.remedy);
    let cause = one_line(&with_causes(error.as_ref()));
    format!("error: {cause}\n help: {}", one_line(remedy))
}

/// Joins the lines of a text by ` | `.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" | ")
}

// === impl Failure ===

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&with_causes(self.cause.as_ref()))
    }
}

impl error::Error for Failure {}

// === impl AlreadyReported ===

impl fmt::Display for AlreadyReported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a child process failed; its error is above")
    }
}

impl error::Error for AlreadyReported {}

// === impl Remedy ===

impl<T, E: Into<Error>> Remedy<T> for Result<T, E> {
    fn remedy(self, remedy: impl Into<String>) -> Result<T> {
        self.map_err(|cause| {
            let (cause, remedy) = (cause.into(), remedy.into());
            Failure { cause, remedy }.into()
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn prints_the_causes_in_one_line_and_the_remedy_in_another() {
        let error = failure("the disk\nis full", "remove files")
            .context("cannot write the image")
            .context("cannot push");
        assert_eq!(
            report(&error, "general"),
            "error: cannot push: cannot write the image: the disk | is full\n help: remove files"
        );
    }

    #[test]
    fn prints_the_general_remedy_for_an_error_without_its_own() {
        let error = anyhow::anyhow!("cause").context("step");
        assert_eq!(
            report(&error, "general"),
            "error: step: cause\n help: general"
        );
    }

    #[test]
    fn prints_the_outermost_remedy() {
        let result: Result<()> = Err(failure("cause", "inner"));
        let error = result.context("step").remedy("outer").unwrap_err();
        assert_eq!(
            report(&error, "general"),
            "error: step: cause\n help: outer"
        );
    }
}
