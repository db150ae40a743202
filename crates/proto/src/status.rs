//! Conversion between evaluation errors and gRPC statuses with `google.rpc.ErrorInfo` details.
//!
//! Encoding and decoding are inverse for statuses sent by this project, so an error that a wrapper
//! reports keeps its code, text and details on its way through the runner.

use std::{collections::HashMap, time::Duration};

use runner_core::{EvaluationError, Reason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::wire::status_size;

/// The `domain` of every `ErrorInfo` this project sends.
pub const DOMAIN: &str = "fn.kpt.dev";

/// Prefix of the user agent of this project's clients, which accept [`MAX_HEADER_SIZE`] bytes of
/// headers.
pub const OWN_AGENT: &str = "krm-function-runner/";

/// Header size in bytes (512 KiB) that this project's clients accept, so that they receive errors
/// as long as those for Go clients.
pub const MAX_HEADER_SIZE: u32 = 512 << 10;

/// Returns the gRPC code of a reason.
#[must_use]
pub fn code(reason: Reason) -> Code {
    match reason {
        Reason::FunctionNotFound => Code::NotFound,
        Reason::BadImage => Code::InvalidArgument,
        Reason::ExecPathOutside => Code::Unknown,
        Reason::FunctionFailed | Reason::BadOutput | Reason::Internal => Code::Internal,
        Reason::MessageTooLarge | Reason::QueueFull => Code::ResourceExhausted,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::Cancelled => Code::Cancelled,
        Reason::RegistryAuth => Code::PermissionDenied,
        Reason::RegistryUnreachable
        | Reason::KubernetesUnreachable
        | Reason::PodStartFailed
        | Reason::PodLost
        | Reason::Draining => Code::Unavailable,
    }
}

/// Returns the status of an error for an unknown client.
///
/// The middle of long texts is cut out.
#[must_use]
pub fn encode(error: &EvaluationError) -> Status {
    encode_for(error, "")
}

/// Returns the status of an error for a client with this user agent.
///
/// Long texts are cut to the header size that the client accepts.
#[must_use]
pub fn encode_for(error: &EvaluationError, user_agent: &str) -> Status {
    status_size::shorten_to(error, status_size::max_size_for(user_agent), whole)
}

fn whole(error: &EvaluationError) -> Status {
    let metadata: HashMap<String, String> = error.metadata().iter().cloned().collect();
    let mut details = ErrorDetails::with_error_info(error.reason().as_str(), DOMAIN, metadata);
    if let Some(delay) = error.retry_after() {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code(error.reason()), error.message(), details)
}

/// Returns the error that a status carries.
///
/// A status of other origin (transport failure, foreign server) gets the reason nearest to its
/// code.
#[must_use]
pub fn decode(status: &Status) -> EvaluationError {
    let details = status.get_error_details();
    let info = details.error_info().filter(|info| info.domain == DOMAIN);
    let reason = info
        .and_then(|info| Reason::parse(&info.reason))
        .unwrap_or_else(|| nearest(status.code()));
    let mut error = EvaluationError::new(reason, status.message());
    if let Some(info) = info {
        let mut metadata: Vec<_> = info.metadata.iter().collect();
        metadata.sort();
        for (key, value) in metadata {
            error = error.with(key.as_str(), value.as_str());
        }
    }
    match details.retry_info().and_then(|retry| retry.retry_delay) {
        Some(delay) => error.retry_in(Duration::max(delay, Duration::from_millis(1))),
        None => error,
    }
}

/// Returns whether this project sent the status, with the reason of an evaluation error.
#[must_use]
pub fn has_reason(status: &Status) -> bool {
    let details = status.get_error_details();
    details
        .error_info()
        .is_some_and(|info| info.domain == DOMAIN)
}

fn nearest(code: Code) -> Reason {
    match code {
        Code::NotFound => Reason::FunctionNotFound,
        Code::InvalidArgument => Reason::BadImage,
        Code::ResourceExhausted => Reason::MessageTooLarge,
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        Code::Cancelled => Reason::Cancelled,
        Code::PermissionDenied | Code::Unauthenticated => Reason::RegistryAuth,
        Code::Unavailable => Reason::PodLost,
        _ => Reason::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_the_wire() {
        for reason in Reason::ALL {
            let sent = EvaluationError::new(reason, "what happened")
                .with("image", "example/fn:v1")
                .with("exit_code", "3");
            let status = encode(&sent);
            assert_eq!(status.code(), code(reason));
            let received = decode(&status);
            assert_eq!(received.reason(), reason);
            assert_eq!(received.message(), "what happened");
            let mut metadata = received.metadata().to_vec();
            metadata.sort();
            assert_eq!(
                metadata,
                [
                    ("exit_code".into(), "3".into()),
                    ("image".into(), "example/fn:v1".into())
                ]
            );
        }
    }

    #[test]
    fn a_retry_delay_survives_the_wire() {
        let sent = EvaluationError::new(Reason::QueueFull, "full").retry_in(Duration::from_secs(2));
        assert_eq!(
            decode(&encode(&sent)).retry_after(),
            Some(Duration::from_secs(2))
        );
    }

    #[test]
    fn a_foreign_status_keeps_its_meaning() {
        let error = decode(&Status::unavailable("connection refused"));
        assert_eq!(error.reason(), Reason::PodLost);
        assert_eq!(code(error.reason()), Code::Unavailable);
    }
}
