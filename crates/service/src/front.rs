//! Passes evaluations to their service without the router that serves all other calls.
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
use runner_core::{EvaluationError, Reason};
use runner_proto::{
    Uncopied,
    evaluator::function_evaluator_server::{FunctionEvaluatorServer, SERVICE_NAME},
    status,
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use crate::{calls::Call, evaluations::Evaluations};

/// A layer that serves evaluations itself and passes all other calls on.
#[derive(Clone)]
pub(crate) struct EvaluationsFirst {
    pub(crate) evaluations: FunctionEvaluatorServer<Evaluations>,
    pub(crate) limit: usize,
}

#[derive(Clone)]
pub(crate) struct Front<S> {
    first: EvaluationsFirst,
    others: S,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Layer<S> for EvaluationsFirst {
    type Service = Front<S>;

    fn layer(&self, others: S) -> Front<S> {
        Front {
            first: self.clone(),
            others,
        }
    }
}

impl<S> Service<Request<Body>> for Front<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Evaluations are always ready.
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let call = Call::begin(request.uri().path());
        if is_evaluation(request.uri().path()) {
            let answer = self.first.evaluations.call(request);
            let limit = self.first.limit;
            Box::pin(measured(call, outgoing(answer, limit)))
        } else {
            Box::pin(measured(call, self.others.call(request)))
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
async fn measured(
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

async fn outgoing(
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
    limit: usize,
) -> Result<Response<Body>, Infallible> {
    let mut response = answer.await?;
    if let Some(body) = Uncopied::take_from(response.extensions_mut()) {
        *response.body_mut() = body;
        return Ok(response);
    }
    // The decoder fails before a handler runs, so its status is in the headers.
    let refusal = Status::from_header_map(response.headers());
    Ok(
        match refusal.and_then(|refusal| in_words(&refusal, limit)) {
            Some(error) => status::encode(&error).into_http(),
            None => response,
        },
    )
}

fn in_words(refusal: &Status, limit: usize) -> Option<EvaluationError> {
    let text = refusal.message();
    let decoder = match refusal.code() {
        Code::OutOfRange => text.contains("decoded message length too large"),
        Code::ResourceExhausted => text.contains("while decompressing message"),
        _ => false,
    };
    if !decoder || !refusal.details().is_empty() {
        return None;
    }
    let size = text
        .split("found ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let (told, size) = match size {
        Some(size) => (format!("{size} bytes"), size),
        None => ("more, once decompressed,".to_owned(), "unknown"),
    };
    let message = format!(
        "the request is too large: {told} where the limit is {limit} bytes \
         (raise --max-request-body-size here and in the client)"
    );
    let error = EvaluationError::new(Reason::MessageTooLarge, message);
    Some(error.with("size", size).with("limit", limit.to_string()))
}
