//! The `FunctionEvaluator` service: decodes requests, calls an evaluator and encodes its answers.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use bytes::Bytes;
use futures::FutureExt;
use http::HeaderMap;
use runner_core::{Evaluation, EvaluationError, Evaluator, Output, Reason};
use runner_proto::{
    evaluator::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::FunctionEvaluator,
    },
    status,
    wire::SegmentedMessage,
};
use tonic::{Request, Response, Status};
use tracing::{Instrument, info, info_span, trace, warn};

use crate::{
    TraceParent, deadline,
    lifecycle::{Lifecycle, Phase},
    metrics::EvaluationMetrics,
    request_id,
};

/// The gRPC service of an evaluator.
pub(crate) struct Evaluations {
    pub(crate) evaluator: Arc<dyn Evaluator>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) trace_parent: Option<TraceParent>,
    /// Size limit of a response in bytes.
    pub(crate) message_limit: usize,
    /// First phase in which new evaluations are refused.
    pub(crate) closed_from: Phase,
}

#[tonic::async_trait]
impl FunctionEvaluator for Evaluations {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let arrived = Instant::now();
        let (metadata, _, request) = request.into_parts();
        let headers = metadata.into_headers();
        let request_id = request_id::from_headers(&headers);
        let span = info_span!(
            "evaluate",
            request_id,
            image = request.image,
            runtime = tracing::field::Empty
        );
        if let Some(join) = self.trace_parent {
            join(&span, &headers);
        }
        let metrics = EvaluationMetrics::new(&request.image, request.resource_list.len(), arrived);
        let evaluation = Evaluation {
            image: request.image,
            tag: request.tag,
            exec_path: request.exec_path,
            resource_list: request.resource_list,
            deadline: deadline::from_headers(&headers, arrived),
        };
        let answer = self.answer(evaluation, arrived).instrument(span).await;
        match answer {
            Ok(output) => {
                metrics.succeeded(&output);
                Ok(self.respond(EvaluateFunctionResponse {
                    resource_list: output.resource_list,
                    log: output.log,
                }))
            }
            Err(error) => {
                metrics.failed(&error);
                let error = error.with("request_id", request_id);
                Err(status::encode_for(&error, user_agent(&headers)))
            }
        }
    }
}

// === impl Evaluations ===

impl Evaluations {
    /// Returns a response. The layer in `dispatch` sends a long one without copying it.
    fn respond(&self, message: EvaluateFunctionResponse) -> Response<EvaluateFunctionResponse> {
        match SegmentedMessage::response(message, self.message_limit) {
            Ok(segmented) => {
                let mut response = Response::new(EvaluateFunctionResponse::default());
                response.extensions_mut().insert(segmented);
                response
            }
            Err(message) => Response::new(message),
        }
    }

    async fn answer(
        &self,
        evaluation: Evaluation,
        arrived: Instant,
    ) -> Result<Output, EvaluationError> {
        let input_for_log = self.keep_for_log(&evaluation);
        let answer = self.evaluate(evaluation).await;
        let milliseconds = u64::try_from(arrived.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &answer {
            Ok(output) => {
                tracing::Span::current().record("runtime", output.runtime);
                tracing::debug!(
                    milliseconds,
                    bytes = output.resource_list.len(),
                    "evaluated"
                );
                if !output.log.is_empty() {
                    tracing::debug!(log = %String::from_utf8_lossy(&output.log), "function log");
                }
            }
            Err(error) => {
                let reason = error.reason().as_str();
                if matches!(error.reason(), Reason::Internal) {
                    warn!(
                        reason,
                        milliseconds,
                        error = error.message(),
                        "evaluation failed"
                    );
                } else {
                    info!(
                        reason,
                        milliseconds,
                        error = error.message(),
                        "evaluation failed"
                    );
                }
                if let Some(list) = input_for_log {
                    trace!(resource_list = %String::from_utf8_lossy(&list), "input of the failure");
                }
            }
        }
        answer
    }

    async fn evaluate(&self, evaluation: Evaluation) -> Result<Output, EvaluationError> {
        if self.lifecycle.phase() >= self.closed_from {
            return Err(draining());
        }
        // A panic in one evaluation must not close the connection and fail all other calls on it.
        let evaluated = AssertUnwindSafe(self.evaluator.evaluate(evaluation)).catch_unwind();
        tokio::select! {
            biased;
            answer = evaluated => answer.unwrap_or_else(|_| Err(EvaluationError::new(
                Reason::Internal,
                "the function runner failed on this request: a bug; its log has the details",
            ))),
            () = self.lifecycle.reached(Phase::Stopping) => Err(draining()),
        }
    }

    /// Returns the input only if the log level includes it, because it keeps the input's buffer
    /// alive.
    fn keep_for_log(&self, evaluation: &Evaluation) -> Option<Bytes> {
        tracing::enabled!(tracing::Level::TRACE).then(|| evaluation.resource_list.clone())
    }
}

fn user_agent(headers: &HeaderMap) -> &str {
    let agent = headers.get(http::header::USER_AGENT);
    agent
        .and_then(|agent| agent.to_str().ok())
        .unwrap_or_default()
}

fn draining() -> EvaluationError {
    EvaluationError::new(
        Reason::Draining,
        "the function runner is shutting down: try again, another replica or its successor answers",
    )
    .retry_in(std::time::Duration::from_secs(1))
}
