//! Error texts of the pod runtime, in the form that package authors know.
//!
//! Additional information follows the known text; codes, reasons and metadata are not changed.

use runner_core::{EvaluationError, Reason};
use runner_proto::status;
use tonic::Code;

/// Returns an error that the wrapper reported, in its known text.
pub(crate) fn reported(error: EvaluationError, image: &str) -> EvaluationError {
    let status = rpc_error(&error);
    error.worded(format!(
        "unable to evaluate {image} with pod evaluator: {status}"
    ))
}

/// Returns an error of the runtime itself, in its known text.
pub(crate) fn failed(error: EvaluationError, image: &str) -> EvaluationError {
    let message = error.message();
    let message = match error.reason() {
        Reason::PodLost => format!(
            "unable to evaluate {image} with pod evaluator after retries: {}",
            rpc_error(&error)
        ),
        Reason::PodStartFailed => {
            format!("unable to get the grpc client to the pod for {image}: {message}")
        }
        Reason::DeadlineExceeded => format!(
            "function evaluation timed out for {image}: context deadline exceeded ({message})"
        ),
        _ => return error,
    };
    error.worded(message)
}

/// Returns an error of an image's lookup, in its known text.
pub(crate) fn unresolved(
    error: EvaluationError,
    image: &str,
    tag: Option<&str>,
) -> EvaluationError {
    match (error.reason(), tag) {
        (Reason::DeadlineExceeded, _) => failed(error, image),
        (_, Some(tag)) => {
            let message = error.message();
            let message = format!(
                "failed to resolve tag for image {image:?} with constraint {tag:?}: {message}"
            );
            error.worded(message)
        }
        (Reason::FunctionNotFound, None) => {
            let message = format!("function {image:?} not found: {}", error.message());
            error.worded(message)
        }
        (_, None) => error,
    }
}

/// Formats a status as Go does.
fn rpc_error(error: &EvaluationError) -> String {
    let code = match status::code(error.reason()) {
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", error.message())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn error(reason: Reason) -> EvaluationError {
        EvaluationError::new(reason, "why").with("fact", "kept")
    }

    #[rstest]
    #[case(Reason::FunctionFailed, "Internal")]
    #[case(Reason::Cancelled, "Canceled")]
    #[case(Reason::MessageTooLarge, "ResourceExhausted")]
    fn reports_the_wrappers_message_after_its_code(#[case] reason: Reason, #[case] code: &str) {
        let worded = reported(error(reason), "x/fn:v1");
        assert_eq!(
            (worded.reason(), worded.fact("fact")),
            (reason, Some("kept"))
        );
        assert_eq!(
            worded.message(),
            format!(
                "unable to evaluate x/fn:v1 with pod evaluator: rpc error: code = {code} desc = why"
            )
        );
    }

    #[rstest]
    #[case(
        Reason::PodLost,
        "unable to evaluate fn with pod evaluator after retries: rpc error: code = Unavailable desc = why"
    )]
    #[case(
        Reason::PodStartFailed,
        "unable to get the grpc client to the pod for fn: why"
    )]
    #[case(
        Reason::DeadlineExceeded,
        "function evaluation timed out for fn: context deadline exceeded (why)"
    )]
    #[case(Reason::QueueFull, "why")]
    fn reports_failures_of_the_runtime_in_known_texts(
        #[case] reason: Reason,
        #[case] message: &str,
    ) {
        let worded = failed(error(reason), "fn");
        assert_eq!((worded.reason(), worded.message()), (reason, message));
    }

    #[rstest]
    #[case(
        Reason::FunctionNotFound,
        Some(">= 1"),
        "failed to resolve tag for image \"fn\" with constraint \">= 1\": why"
    )]
    #[case(Reason::FunctionNotFound, None, "function \"fn\" not found: why")]
    #[case(Reason::RegistryAuth, None, "why")]
    #[case(
        Reason::DeadlineExceeded,
        Some(">= 1"),
        "function evaluation timed out for fn: context deadline exceeded (why)"
    )]
    fn an_image_that_cannot_be_looked_up_is_named(
        #[case] reason: Reason,
        #[case] tag: Option<&str>,
        #[case] message: &str,
    ) {
        let worded = unresolved(error(reason), "fn", tag);
        assert_eq!((worded.reason(), worded.message()), (reason, message));
    }
}
