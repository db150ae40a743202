//! What a check finds.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Warning,
    Failed,
    /// Not looked at, and why.
    Skipped,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    pub(super) state: State,
    pub(super) finding: String,
    /// A command, or a field to change; always there where something is wrong.
    pub(super) fix: Option<String>,
}

/// The same with the check's name, as it is shown.
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

    /// What could not be looked at: nobody's fault if it is only that we may not.
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

/// An API error in the server's own words.
pub(super) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => crate::connection::innermost(error),
    }
}
