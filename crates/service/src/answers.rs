//! Answers on their way out: long ones go as they lie in memory, and what tonic says of a request
//! over the message limit is said in words and details.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use runner_core::{EvaluationError, Reason};
use runner_proto::{Uncopied, status};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

/// Gives long answers their body and rewrites the refusals of the decoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswersLayer {
    pub(crate) limit: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Answers<S> {
    inner: S,
    limit: usize,
}

impl<S> Layer<S> for AnswersLayer {
    type Service = Answers<S>;

    fn layer(&self, inner: S) -> Answers<S> {
        Answers {
            inner,
            limit: self.limit,
        }
    }
}

impl<S, B> Service<Request<B>> for Answers<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.inner.call(request);
        let limit = self.limit;
        Box::pin(async move {
            let mut response = answer.await?;
            if let Some(body) = Uncopied::take_from(response.extensions_mut()) {
                *response.body_mut() = body;
                return Ok(response);
            }
            // The decoder refuses before a handler runs, so its status is in the headers.
            let refusal = Status::from_header_map(response.headers());
            Ok(
                match refusal.and_then(|refusal| in_words(&refusal, limit)) {
                    Some(error) => status::encode(&error).into_http(),
                    None => response,
                },
            )
        })
    }
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
