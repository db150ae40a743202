//! Dispatches evaluations directly to their service, and all other calls to the router.
//!
//! Almost all calls are evaluations, and routing would execute a lot of code for each. Long
//! responses are sent without copying them, and tonic's error for a request over the message limit
//! is replaced by one with an explanation and details.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use runner_proto::{
    evaluator::function_evaluator_server::{FunctionEvaluatorServer, SERVICE_NAME},
    status,
    wire::{SegmentedMessage, explain_size_limit},
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use crate::{calls::Call, evaluations::Evaluations};

/// A layer that serves evaluations itself and passes all other calls on.
#[derive(Clone)]
pub(crate) struct DispatchLayer {
    pub(crate) service: FunctionEvaluatorServer<Evaluations>,
    pub(crate) limit: usize,
}

#[derive(Clone)]
pub(crate) struct Dispatch<S> {
    evaluations: DispatchLayer,
    others: S,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Layer<S> for DispatchLayer {
    type Service = Dispatch<S>;

    fn layer(&self, others: S) -> Dispatch<S> {
        Dispatch {
            evaluations: self.clone(),
            others,
        }
    }
}

impl<S> Service<Request<Body>> for Dispatch<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Evaluations are always ready.
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let call = Call::begin(request.uri().path());
        if is_evaluation(request.uri().path()) {
            let answer = self.evaluations.service.call(request);
            let limit = self.evaluations.limit;
            Box::pin(with_metrics(call, replace_body_or_error(answer, limit)))
        } else {
            Box::pin(with_metrics(call, self.others.call(request)))
        }
    }
}

/// Returns whether a path, `/service/method`, belongs to the evaluation service.
fn is_evaluation(path: &str) -> bool {
    let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    service.is_some_and(|(service, _)| service == SERVICE_NAME)
}

/// Records the status of a response.
///
/// A response without a status in its headers succeeded: handlers of unary calls have either a
/// response or an error before the first header is sent.
async fn with_metrics(
    call: Option<Call>,
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
) -> Result<Response<Body>, Infallible> {
    let response = answer.await?;
    if let Some(mut call) = call {
        let status = Status::from_header_map(response.headers());
        call.code = status.map_or(Code::Ok, |status| status.code());
    }
    Ok(response)
}

/// Replaces the body of a long response, and the refusal of a request over the size limit.
async fn replace_body_or_error(
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
    limit: usize,
) -> Result<Response<Body>, Infallible> {
    let mut response = answer.await?;
    if let Some(body) = SegmentedMessage::take_from(response.extensions_mut()) {
        *response.body_mut() = body;
        return Ok(response);
    }
    // The decoder fails before a handler runs, so its status is in the headers.
    let refusal = Status::from_header_map(response.headers());
    Ok(
        match refusal.and_then(|refusal| explain_size_limit(&refusal, limit)) {
            Some(error) => status::encode(&error).into_http(),
            None => response,
        },
    )
}
