//! Errors of evaluations, as clients receive them.

use std::{fmt, time::Duration};

/// The typed cause of a failed evaluation. The names are part of the wire contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No runtime can run the image, or the registry has no such manifest.
    FunctionNotFound,
    /// The image or its tag constraint is malformed.
    BadImage,
    /// The request's `exec_path` names a file that callers are not allowed to run.
    ExecPathOutside,
    /// The function exited non-zero or was killed by a signal.
    FunctionFailed,
    /// The function succeeded but printed no `ResourceList`.
    BadOutput,
    /// A request, or a function's output, is over the message limit.
    MessageTooLarge,
    /// Too many requests for this function are already waiting.
    QueueFull,
    /// The caller's deadline, or the function's own time limit, has passed.
    DeadlineExceeded,
    /// The caller disconnected.
    Cancelled,
    /// The registry refuses the credentials.
    RegistryAuth,
    /// The registry does not answer.
    RegistryUnreachable,
    /// The Kubernetes API server does not answer.
    KubernetesUnreachable,
    /// The function's pod cannot start.
    PodStartFailed,
    /// The function's pod disappeared during the call.
    PodLost,
    /// The server is shutting down.
    Draining,
    /// An operation of the runner itself failed, such as a fork or a write to a full disk.
    Internal,
}

/// A failed evaluation: a reason for programs, a message for people, and metadata for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError {
    reason: Reason,
    message: String,
    metadata: Vec<(String, String)>,
    retry_after: Option<Duration>,
}

// === impl Reason ===

impl Reason {
    /// All reasons, for tables and tests.
    pub const ALL: [Self; 16] = [
        Self::FunctionNotFound,
        Self::BadImage,
        Self::ExecPathOutside,
        Self::FunctionFailed,
        Self::BadOutput,
        Self::MessageTooLarge,
        Self::QueueFull,
        Self::DeadlineExceeded,
        Self::Cancelled,
        Self::RegistryAuth,
        Self::RegistryUnreachable,
        Self::KubernetesUnreachable,
        Self::PodStartFailed,
        Self::PodLost,
        Self::Draining,
        Self::Internal,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FunctionNotFound => "FUNCTION_NOT_FOUND",
            Self::BadImage => "BAD_IMAGE",
            Self::ExecPathOutside => "EXEC_PATH_OUTSIDE",
            Self::FunctionFailed => "FUNCTION_FAILED",
            Self::BadOutput => "BAD_OUTPUT",
            Self::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Self::QueueFull => "QUEUE_FULL",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Cancelled => "CANCELLED",
            Self::RegistryAuth => "REGISTRY_AUTH",
            Self::RegistryUnreachable => "REGISTRY_UNREACHABLE",
            Self::KubernetesUnreachable => "KUBERNETES_UNREACHABLE",
            Self::PodStartFailed => "POD_START_FAILED",
            Self::PodLost => "POD_LOST",
            Self::Draining => "DRAINING",
            Self::Internal => "INTERNAL",
        }
    }

    /// Returns the reason with this name on the wire.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl EvaluationError ===

impl EvaluationError {
    /// Creates an error without metadata.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            metadata: Vec::new(),
            retry_after: None,
        }
    }

    /// Creates a "not found" error, the only error that makes a chain try its next runtime.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Reason::FunctionNotFound, message)
    }

    /// Adds a metadata entry; a later value of the same key replaces the earlier one.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.metadata.retain(|(known, _)| *known != key);
        self.metadata.push((key, value.into()));
        self
    }

    /// Replaces the message; reason and metadata stay.
    #[must_use]
    pub fn worded(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the delay after which the client may retry.
    #[must_use]
    pub fn retry_in(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Returns the typed cause.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns metadata such as `image`, `evaluator`, `exit_code`.
    #[must_use]
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// Returns the metadata value of this key.
    #[must_use]
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.metadata
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the delay after which a retry may succeed.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns whether another runtime may be able to run the image.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.reason == Reason::FunctionNotFound
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_names_of_all_reasons() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::parse("NO_SUCH_REASON"), None);
    }

    #[test]
    fn keeps_the_last_value_of_a_metadata_key() {
        let error = EvaluationError::not_found("x")
            .with("image", "a")
            .with("image", "b");
        assert_eq!(error.metadata(), [("image".to_owned(), "b".to_owned())]);
    }
}
