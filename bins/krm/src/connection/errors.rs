//! Failures that gRPC errors are reported as.

use std::error::Error;

use runner_core::{DisplayDuration, Reason};
use tonic::{Code, Status, TimeoutExpired};

use super::Connection;
use crate::failure::Failure;

/// Returns the failure to report: the runner's message, its metadata and a hint.
pub(super) fn failure(status: &Status, image: &str, connection: &Connection) -> Failure {
    let error = runner_proto::status::decode(status);
    let is_foreign = !status
        .details()
        .windows(DOMAIN.len())
        .any(|bytes| bytes == DOMAIN);
    if is_foreign && let Some(failure) = transport(status, connection) {
        return failure;
    }
    let mut failure = Failure::failed(match error.message().trim() {
        "" => format!("function {image} failed: {}", status.code()),
        message => message.to_owned(),
    });
    failure = failure.with("reason", error.reason().as_str());
    for (name, value) in error.metadata() {
        failure = failure.with(name, value);
    }
    if let Some(delay) = error.retry_after() {
        failure = failure.with("retry after", DisplayDuration(delay).to_string());
    }
    match hint(error.reason()) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

const DOMAIN: &[u8] = runner_proto::status::DOMAIN.as_bytes();

/// Returns the failure of the connection itself, for a status that no runner sent.
fn transport(status: &Status, connection: &Connection) -> Option<Failure> {
    let address = &connection.server.address;
    // A status with a source was created by the client.
    let is_ours = status.source().is_some();
    let reason = || {
        status
            .source()
            .map_or_else(|| status.message().to_owned(), super::innermost)
    };
    match status.code() {
        Code::DeadlineExceeded => Some(too_slow(connection)),
        // The client's own timeout ends a call with `Cancelled`.
        Code::Cancelled if is_timeout(status) => Some(too_slow(connection)),
        Code::OutOfRange | Code::ResourceExhausted => Some(
            Failure::failed(format!("a message is over the limit: {}", status.message()))
                .with("reason", Reason::MessageTooLarge.as_str())
                .hint("raise --max-message-size here and --max-request-body-size at the runner"),
        ),
        Code::Unimplemented => Some(Failure::unreachable(format!(
            "the server at {address} is not a function runner: it does not know FunctionEvaluator"
        ))),
        Code::Unknown | Code::Internal if is_ours => Some(Failure::unreachable(format!(
            "the server at {address} does not speak gRPC: {}",
            reason()
        ))),
        code if code == Code::Unavailable || is_ours => Some(
            Failure::unreachable(format!(
                "the connection to the runner at {address} was lost: {}",
                reason()
            ))
            .hint("check the TLS flags and the runner's log, and run the function again"),
        ),
        _ => None,
    }
}

fn too_slow(connection: &Connection) -> Failure {
    let timeout = DisplayDuration(connection.timeout);
    Failure::failed(format!("the function did not finish within {timeout}"))
        .with("reason", Reason::DeadlineExceeded.as_str())
        .hint("give it more time with --timeout")
}

fn is_timeout(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn hint(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::FunctionNotFound => {
            "check the image's name and tag, and that the runner's configuration knows it"
        }
        Reason::BadImage => {
            "name an image that has a program to run, as [REGISTRY/]NAME[:TAG][@DIGEST]"
        }
        Reason::MessageTooLarge => {
            "raise --max-request-body-size at the runner and --max-message-size here"
        }
        Reason::QueueFull => "the runner is busy; run the function again in a while",
        Reason::DeadlineExceeded => "give it more time with --timeout",
        Reason::RegistryAuth => "give the runner credentials for the image's registry",
        Reason::Draining => "the runner is shutting down; run the function again in a while",
        Reason::BadOutput => "the function must print a ResourceList on standard output",
        _ => return None,
    })
}
