//! Outcomes of checks.

use serde::Serialize;

/// The severity of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Warning,
    Failed,
    /// The check was not possible or not needed; the finding gives the reason.
    Skipped,
}

/// One result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    pub(super) state: State,
    pub(super) finding: String,
    /// A command, or a field to change; present in every warning and failure.
    pub(super) fix: Option<String>,
}

/// An outcome with the name of its check, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

// === impl Outcome ===

impl Outcome {
    pub(super) fn ok(finding: impl Into<String>) -> Self {
        Self {
            state: State::Ok,
            finding: finding.into(),
            fix: None,
        }
    }

    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self {
            state: State::Skipped,
            ..Self::ok(why)
        }
    }

    pub(super) fn warning(finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            finding: finding.into(),
            fix: Some(fix.into()),
        }
    }

    pub(super) fn failed(finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Failed,
            ..Self::warning(finding, fix)
        }
    }

    /// Returns the outcome for an object that cannot be read: skipped if only the user lacks
    /// permission.
    pub(super) fn unseen(what: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
                Self::skipped(format!("you may not see {what}: {}", status.message))
            }
            error => Self::failed(
                format!("cannot read {what}: {}", said(error)),
                "see whether the API server is healthy: kubectl get --raw /readyz",
            ),
        }
    }
}

/// Returns the API server's message, or the innermost cause of another error.
pub(super) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => crate::connection::innermost(error),
    }
}
