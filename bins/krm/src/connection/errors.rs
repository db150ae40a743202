//! Failures that errors of the client are reported as.

use runner_client::CallError;
use runner_core::{DisplayDuration, EvaluationError, Reason, with_causes};

use crate::failure::Failure;

const RAISE_LIMITS: &str =
    "raise --max-message-size here and --max-request-body-size at the runner";

/// Returns the failure to report: the message, its metadata and a hint.
#[must_use]
pub fn failure(error: &CallError) -> Failure {
    let message = with_causes(error);
    match error {
        CallError::Evaluation(error) => evaluation(error),
        CallError::RequestTooLarge { .. } => Failure::failed(message).hint(RAISE_LIMITS),
        CallError::MessageTooLarge(_) => Failure::failed(message)
            .with("reason", Reason::MessageTooLarge.as_str())
            .hint(RAISE_LIMITS),
        CallError::Timeout { timeout, .. } => {
            let timeout = DisplayDuration(*timeout);
            Failure::failed(format!("the function did not finish within {timeout}"))
                .with("reason", Reason::DeadlineExceeded.as_str())
                .hint("raise --timeout")
        }
        CallError::NotOffered { .. } => Failure::unreachable(message)
            .hint("name the address of a function runner with --address"),
        CallError::Unreachable { .. } => Failure::unreachable(message)
            .hint("start a runner with `function-runner`, or name another with --address"),
        CallError::NotGrpc { .. } => Failure::unreachable(message)
            .hint("name the port of the runner with --address, and check the TLS flags"),
        CallError::Lost { .. } => Failure::unreachable(message)
            .hint("check the TLS flags and the log of the runner, then try again"),
    }
}

fn evaluation(error: &EvaluationError) -> Failure {
    let mut failure = Failure::failed(error.message().trim());
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

fn hint(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::FunctionNotFound => {
            "check the name and tag of the image, and the configuration of the runner (krm functions)"
        }
        Reason::BadImage => {
            "name an image that has a program to run, as [REGISTRY/]NAME[:TAG][@DIGEST]"
        }
        Reason::MessageTooLarge => RAISE_LIMITS,
        Reason::QueueFull => "the runner is busy; try again later",
        Reason::DeadlineExceeded => "raise --timeout",
        Reason::RegistryAuth => "give the runner credentials for the registry of the image",
        Reason::Draining => "the runner is shutting down; try again later",
        Reason::BadOutput => "the function must write a ResourceList to standard output",
        _ => return None,
    })
}
