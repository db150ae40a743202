//! Shortens a status to the header size that clients accept.
//!
//! A status is sent in headers and contains its message twice: percent-encoded, where a space takes
//! three bytes, and within the details. Clients limit their headers: Java and gRPC core to 8 KiB,
//! hyper to 16 KiB, Go to 16 MiB. A client that receives more closes the connection, and with it
//! all calls that share it.

use runner_core::{EvaluationError, text::cut_middle};
use tonic::{Status, codegen::http::HeaderMap};

use crate::status::OWN_AGENT;

/// Largest size of a status in bytes (7 KiB): the smallest limit of a client, minus the space for
/// headers that are added on the way.
const MAX_SIZE: usize = 7 << 10;

/// Largest size of a status for Go clients in bytes (256 KiB).
///
/// It is far below Go's limit and far more than the error of an evaluation needs. Porch is written
/// in Go, and its package authors should see the whole error.
const MAX_SIZE_FOR_GO: usize = 256 << 10;

/// Bytes that HTTP/2 counts for each header in addition to its name and value.
const HEADER_OVERHEAD: usize = 32;

/// Returns the size in bytes of a status that a client accepts, judged by its user agent.
pub(crate) fn max_size_for(user_agent: &str) -> usize {
    if user_agent.contains("grpc-go/") || user_agent.contains(OWN_AGENT) {
        MAX_SIZE_FOR_GO
    } else {
        MAX_SIZE
    }
}

/// Returns a status with as much of the error as fits; the longest texts lose their middle.
pub(crate) fn shorten_to(
    error: &EvaluationError,
    max_size: usize,
    status: impl Fn(&EvaluationError) -> Status,
) -> Status {
    let whole = status(error);
    if size(&whole) <= max_size {
        return whole;
    }
    let mut longest = max_size;
    loop {
        let cut = status(&cut_texts(error, longest));
        if size(&cut) <= max_size || longest == 0 {
            return cut;
        }
        longest = longest * 7 / 8;
    }
}

fn size(status: &Status) -> usize {
    let mut headers = HeaderMap::new();
    match status.add_header(&mut headers) {
        Ok(()) => headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD)
            .sum(),
        Err(_) => usize::MAX,
    }
}

fn cut_texts(error: &EvaluationError, longest: usize) -> EvaluationError {
    let mut shorter = EvaluationError::new(error.reason(), cut_middle(error.message(), longest));
    for (key, value) in error.metadata() {
        shorter = shorter.with(key.as_str(), cut_middle(value, longest));
    }
    match error.retry_after() {
        Some(delay) => shorter.retry_in(delay),
        None => shorter,
    }
}

#[cfg(test)]
mod tests {
    use runner_core::Reason;

    use super::*;
    use crate::status::{decode, encode, encode_for};

    fn long(text: &str) -> EvaluationError {
        let text = format!("first {} last", text.repeat(100_000 / text.len()));
        EvaluationError::new(Reason::FunctionFailed, &*text)
            .with("results", text)
            .with("image", "example.com/fn:v1")
    }

    #[test]
    fn fits_any_text_and_keeps_both_ends() {
        for text in ["text ", "\0", "é", "\u{1F980}", "\n"] {
            let status = encode(&long(text));
            assert!(size(&status) <= MAX_SIZE);
            assert!(size(&status) > MAX_SIZE / 2, "no more is cut than needed");
            assert!(status.message().starts_with("first") && status.message().ends_with("last"));
            let error = decode(&status);
            assert_eq!(error.fact("image"), Some("example.com/fn:v1"));
            assert!(
                error
                    .fact("results")
                    .is_some_and(|text| text.ends_with("last"))
            );
        }
    }

    #[test]
    fn sends_the_whole_message_to_porch_and_to_own_clients() {
        let error = EvaluationError::new(Reason::FunctionFailed, "a long log\n".repeat(3000));
        for agent in [
            "kpt porch-server grpc-go/1.71.0",
            "krm-function-runner/1.0.0 tonic/0.14.2",
        ] {
            let status = encode_for(&error, agent);
            assert_eq!(status.message(), error.message(), "{agent}");
        }
    }

    #[test]
    fn measures_the_headers_that_tonic_sends() {
        let status = encode(&long("text "));
        let measured = size(&status);
        let response: http::Response<tonic::body::Body> = status.into_http();
        let sent: usize = response
            .headers()
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("grpc-"))
            .map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD)
            .sum();
        assert_eq!(measured, sent);
    }

    #[test]
    fn keeps_a_message_that_fits() {
        let error = EvaluationError::new(Reason::FunctionFailed, "line\n".repeat(200));
        assert_eq!(encode(&error).message(), error.message());
    }
}
