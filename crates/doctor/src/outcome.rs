//! Outcomes of checks.

use serde::Serialize;

/// The severity of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The check found no problem.
    Ok,
    /// Speed or safety is affected, but no evaluation fails.
    Warning,
    /// Evaluations fail, or the runner does not work.
    Failed,
    /// The check was not possible or not needed; the finding gives the reason.
    Skipped,
}

/// One result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Severity of the finding.
    pub state: State,
    /// The result in words.
    pub finding: String,
    /// A command, or a field to change; present in every warning and failure.
    pub fix: Option<String>,
}

/// An outcome with the name of its check, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check, such as `api-server`.
    pub check: &'static str,
    /// The outcome of the check.
    #[serde(flatten)]
    pub outcome: Outcome,
}

// === impl Outcome ===

impl Outcome {
    /// Returns the outcome of a check that found nothing wrong.
    pub fn ok(finding: impl Into<String>) -> Self {
        Self {
            state: State::Ok,
            finding: finding.into(),
            fix: None,
        }
    }

    /// Returns the outcome of a check that was not possible or not needed.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self {
            state: State::Skipped,
            ..Self::ok(why)
        }
    }

    /// Returns a warning and its fix.
    pub fn warning(finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            finding: finding.into(),
            fix: Some(fix.into()),
        }
    }

    /// Returns a failure and its fix.
    pub fn failed(finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Failed,
            ..Self::warning(finding, fix)
        }
    }

    /// Returns the outcome for an object that cannot be read: skipped if only the user lacks
    /// permission.
    pub(crate) fn unreadable(what: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
                Self::skipped(format!("you may not read {what}: {}", status.message))
            }
            error => Self::failed(
                format!("cannot read {what}: {}", message(error)),
                "check the health of the API server: kubectl get --raw /readyz",
            ),
        }
    }
}

/// Returns the API server's message, or the innermost cause of another error.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => runner_core::innermost(error),
    }
}
