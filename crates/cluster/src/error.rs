//! Classification of API server errors, and their effect on waiting evaluations.

use std::{sync::Arc, time::Duration};

use runner_core::{EvaluationError, Reason, innermost, with_causes};
use runner_pool::StartFailure;

/// The reason why a request to the API server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The object or its kind does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The object was changed concurrently, or its name is taken.
    #[error("{0}")]
    Conflict(String),
    /// Quota, admission, permission or validation forbids the request; a retry does not help.
    #[error("{0}")]
    Refused(String),
    /// The server throttles requests or has an internal error; a retry may help.
    #[error("the Kubernetes API server is in trouble: {0}")]
    Temporary(String),
    /// The server did not answer.
    #[error("the Kubernetes API server cannot be reached")]
    Unreachable(#[source] NoAnswer),
}

/// The reason why the API server did not answer a request.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The time limit of the request passed.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The request failed; the text is the innermost cause, since the other errors of the chain
    /// name only the layers of the client.
    #[error("{}", innermost(.0.as_ref()))]
    Request(Arc<kube::Error>),
}

// === impl ApiError ===

impl ApiError {
    /// Logs the failed operation `what` on the object `name` as a warning.
    ///
    /// [`Unreachable`](Self::Unreachable) is logged at debug level only: the client logs the start
    /// and the end of an outage.
    pub fn log(&self, what: &str, name: &str) {
        match self {
            Self::Unreachable(_) => tracing::debug!(name, error = with_causes(self), "{what}"),
            _ => tracing::warn!(name, error = with_causes(self), "{what}"),
        }
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::Unreachable(NoAnswer::Timeout(after))
    }

    /// Converts the error into the failure of a pod start.
    #[must_use]
    pub fn into_start_failure(self) -> StartFailure {
        let message = with_causes(&self);
        match self {
            Self::Refused(_) | Self::NotFound(_) => StartFailure::Refused(EvaluationError::new(
                Reason::PodStartFailed,
                format!("the Kubernetes API server refuses the function's pod: {message}"),
            )),
            Self::Conflict(_) | Self::Temporary(_) | Self::Unreachable(_) => {
                StartFailure::Passing(EvaluationError::new(Reason::KubernetesUnreachable, message))
            }
        }
    }
}

// === impl NoAnswer ===

/// Two are equal if their texts are: errors of the client cannot be compared.
impl PartialEq for NoAnswer {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for NoAnswer {}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            kube::Error::SerdeError(error) => return Self::Refused(error.to_string()),
            other => return Self::Unreachable(NoAnswer::Request(Arc::new(other))),
        };
        let message = if status.message.is_empty() {
            format!("{} {}", status.code, status.reason)
        } else {
            status.message
        };
        match status.code {
            404 => Self::NotFound(message),
            409 => Self::Conflict(message),
            408 | 429 | 500..=599 => Self::Temporary(message),
            _ => Self::Refused(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;

    use super::*;

    fn answered(code: u16) -> ApiError {
        kube::Error::Api(Box::new(Status {
            code,
            message: "said so".to_owned(),
            ..Status::default()
        }))
        .into()
    }

    #[test]
    fn names_the_innermost_cause_of_a_request_without_answer() {
        let refused = std::io::Error::other("connection refused");
        let error = ApiError::from(kube::Error::Service(Box::new(refused)));
        assert_eq!(
            with_causes(&error),
            "the Kubernetes API server cannot be reached: connection refused"
        );
    }

    #[rstest]
    #[case(403)]
    #[case(422)]
    #[case(404)]
    fn fails_waiting_evaluations_with_the_servers_message_on_a_refusal(#[case] code: u16) {
        let StartFailure::Refused(error) = answered(code).into_start_failure() else {
            panic!("{code} is final")
        };
        assert_eq!(error.reason(), Reason::PodStartFailed);
        assert!(error.message().contains("said so"));
    }

    #[rstest]
    #[case(409)]
    #[case(429)]
    #[case(500)]
    #[case(503)]
    fn retries_after_a_conflict_or_a_server_error(#[case] code: u16) {
        let StartFailure::Passing(error) = answered(code).into_start_failure() else {
            panic!("{code} passes")
        };
        assert_eq!(error.reason(), Reason::KubernetesUnreachable);
    }
}
