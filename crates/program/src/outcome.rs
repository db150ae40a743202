//! Interprets how a function ended.
//!
//! The error texts are old and reach package authors, so they must not change.

use runner_core::{EvaluationError, Reason, text::excerpt};
use runner_process::{Completed, Exit};
use runner_resourcelist::{Envelope, ScanError, scan};

use crate::evaluator::EXCERPT;

/// The error texts in which failures are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// The texts of the exec runtime.
    Exec,
    /// The texts of the wrapper inside a pod.
    Wrapper,
}

/// Checks that the function succeeded and printed a resource list.
pub(crate) fn check(
    wording: Wording,
    image: &str,
    completed: &Completed,
) -> Result<(), EvaluationError> {
    let envelope = scan(&completed.stdout);
    let stderr = || excerpt(&completed.stderr, EXCERPT);
    let flat = || flatten(&stderr());
    match (completed.exit.success(), envelope) {
        (true, Ok(envelope)) => {
            if envelope.has_errors() {
                tracing::info!(
                    image,
                    results = envelope.results_text(),
                    "function reports errors"
                );
            }
            Ok(())
        }
        (true, Err(why)) => Err(EvaluationError::new(
            Reason::BadOutput,
            unparsable(image, &flat(), &why),
        )),
        (false, envelope) => {
            let message = match (wording, &envelope) {
                (Wording::Exec, envelope) => {
                    executed(image, completed.exit, &stderr(), envelope.as_ref().ok())
                }
                (Wording::Wrapper, Ok(envelope)) => structured(image, envelope, &flat()),
                (Wording::Wrapper, Err(why)) => unparsable(image, &flat(), why),
            };
            let error = EvaluationError::new(Reason::FunctionFailed, message);
            let error = match completed.exit {
                Exit::Code(code) => error.with("exit_code", code.to_string()),
                Exit::Signal(signal) => error.with("signal", signal.to_string()),
            };
            Err(match (wording, envelope) {
                // The message contains only the results that are missing in standard error.
                (Wording::Exec, Ok(envelope)) if !envelope.results.is_empty() => error.with(
                    "results",
                    excerpt(envelope.results_text().as_bytes(), EXCERPT),
                ),
                _ => error,
            })
        }
    }
}

/// Returns the error text of the exec runtime.
///
/// Results that are missing in standard error are appended: package authors would not see them
/// otherwise.
fn executed(image: &str, exit: Exit, stderr: &str, envelope: Option<&Envelope>) -> String {
    let failed = format!("Failed to execute function {image:?}: {exit} ({stderr})");
    let results = envelope.map(|envelope| envelope.results_missing_in(stderr));
    match results.as_deref() {
        None | Some("") => failed,
        Some(results) => {
            let results = excerpt(results.as_bytes(), EXCERPT);
            format!("{failed} with structured results: {results}")
        }
    }
}

/// Returns standard error in one line: line ends become ` | `, those at both ends are removed, and
/// other white space is kept.
fn flatten(stderr: &str) -> String {
    let mut flat = String::with_capacity(stderr.len());
    let mut characters = stderr.trim_matches(['\r', '\n']).chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => flat.push_str(" | "),
            other => flat.push(other),
        }
    }
    flat
}

fn structured(image: &str, envelope: &Envelope, stderr: &str) -> String {
    let results = excerpt(envelope.results_text().as_bytes(), EXCERPT);
    format!(
        "failed to evaluate function {image:?} with structured results: {results} and stderr: {stderr}"
    )
}

fn unparsable(image: &str, stderr: &str, why: &ScanError) -> String {
    format!("failed to parse the output of function {image:?} with stderr '{stderr}': {why}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rstest::rstest;

    use super::*;

    const LIST: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";
    const RESULTS: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nresults:\n- message: too few\n  severity: error\n  field: {path: spec.replicas}\n";

    #[rstest]
    #[case(Wording::Exec, LIST, Exit::Code(0), None)]
    #[case(Wording::Exec, RESULTS, Exit::Code(0), None)]
    #[case(
        Wording::Wrapper,
        "",
        Exit::Code(0),
        Some(
            "failed to parse the output of function \"fn\" with stderr 'oh': expected a ResourceList, found nothing"
        )
    )]
    #[case(
        Wording::Exec,
        "",
        Exit::Code(2),
        Some("Failed to execute function \"fn\": exit status 2 (oh\n)")
    )]
    #[case(
        Wording::Exec,
        RESULTS,
        Exit::Code(1),
        Some(
            "Failed to execute function \"fn\": exit status 1 (oh\n) with structured results: [error] spec.replicas: too few"
        )
    )]
    #[case(
        Wording::Exec,
        "",
        Exit::Signal(9),
        Some("Failed to execute function \"fn\": signal: killed (oh\n)")
    )]
    #[case(
        Wording::Wrapper,
        RESULTS,
        Exit::Code(1),
        Some(
            "failed to evaluate function \"fn\" with structured results: [error] spec.replicas: too few and stderr: oh"
        )
    )]
    #[case(
        Wording::Wrapper,
        "noise",
        Exit::Code(1),
        Some(
            "failed to parse the output of function \"fn\" with stderr 'oh': line 1: expected a ResourceList, found no mapping"
        )
    )]
    fn the_known_wordings_are_kept(
        #[case] wording: Wording,
        #[case] stdout: &'static str,
        #[case] exit: Exit,
        #[case] message: Option<&str>,
    ) {
        let completed = Completed {
            stdout: Bytes::from(stdout),
            stderr: Bytes::from("oh\n"),
            exit,
        };
        let checked = check(wording, "fn", &completed).map_err(|error| error.message().to_owned());
        assert_eq!(checked.err().as_deref(), message);
    }

    #[test]
    fn results_that_are_in_standard_error_are_not_repeated() {
        let completed = Completed {
            stdout: Bytes::from(RESULTS),
            stderr: Bytes::from("fn: too few replicas\n"),
            exit: Exit::Code(1),
        };
        let error = check(Wording::Exec, "fn", &completed).unwrap_err();
        assert_eq!(
            error.message(),
            "Failed to execute function \"fn\": exit status 1 (fn: too few replicas\n)"
        );
    }

    #[rstest]
    #[case("oh\n", "oh")]
    #[case("\n\none\r\ntwo\rthree\n\n", "one | two | three")]
    #[case("  one\n\n\ttwo ", "  one |  | \ttwo ")]
    #[case("", "")]
    fn standard_error_is_flattened_into_one_line(#[case] stderr: &str, #[case] flat: &str) {
        assert_eq!(flatten(stderr), flat);
    }

    #[test]
    fn adds_the_results_to_the_error_metadata() {
        let completed = Completed {
            stdout: Bytes::from(RESULTS),
            stderr: Bytes::new(),
            exit: Exit::Code(1),
        };
        let error = check(Wording::Exec, "fn", &completed).unwrap_err();
        assert_eq!(
            error.fact("results"),
            Some("[error] spec.replicas: too few")
        );
        assert_eq!(error.fact("exit_code"), Some("1"));
    }
}
