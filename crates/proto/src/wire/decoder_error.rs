//! Recognises the error of tonic's decoder for a message over the size limit.

use runner_core::{EvaluationError, Reason};
use tonic::{Code, Status};

/// Returns `MESSAGE_TOO_LARGE` with sizes and the flag to change, if tonic's decoder refused the
/// request because of its size.
#[must_use]
pub fn explain_size_limit(refusal: &Status, limit: usize) -> Option<EvaluationError> {
    let text = refusal.message();
    let is_size = match refusal.code() {
        Code::OutOfRange => text.contains("decoded message length too large"),
        Code::ResourceExhausted => text.contains("while decompressing message"),
        _ => false,
    };
    if !is_size || !refusal.details().is_empty() {
        return None;
    }
    let size = text
        .split("found ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let (words, size) = match size {
        Some(size) => (format!("{size} bytes"), size),
        None => ("more, once decompressed,".to_owned(), "unknown"),
    };
    let message = format!(
        "the request is too large: {words} where the limit is {limit} bytes \
         (raise --max-request-body-size here and in the client)"
    );
    let error = EvaluationError::new(Reason::MessageTooLarge, message);
    Some(error.with("size", size).with("limit", limit.to_string()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tonic::codec::CompressionEncoding;

    use super::*;
    use crate::{
        evaluator::{
            EvaluateFunctionRequest, EvaluateFunctionResponse,
            function_evaluator_client::FunctionEvaluatorClient,
            function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
        },
        status::decode,
    };

    struct Echo;

    #[tonic::async_trait]
    impl FunctionEvaluator for Echo {
        async fn evaluate_function(
            &self,
            request: tonic::Request<EvaluateFunctionRequest>,
        ) -> Result<tonic::Response<EvaluateFunctionResponse>, Status> {
            let resource_list = request.into_inner().resource_list;
            Ok(tonic::Response::new(EvaluateFunctionResponse {
                resource_list,
                log: Bytes::new(),
            }))
        }
    }

    /// Returns the refusal of tonic's decoder for a request of this size.
    async fn refusal(size: usize, limit: usize, compressed: bool) -> Status {
        let server = FunctionEvaluatorServer::new(Echo)
            .max_decoding_message_size(limit)
            .accept_compressed(CompressionEncoding::Gzip);
        let mut client = FunctionEvaluatorClient::new(server);
        if compressed {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let request = EvaluateFunctionRequest {
            resource_list: Bytes::from(vec![b'x'; size]),
            ..EvaluateFunctionRequest::default()
        };
        client.evaluate_function(request).await.unwrap_err()
    }

    #[tokio::test]
    async fn recognises_the_refusals_of_the_decoder() {
        for (compressed, size) in [(false, "2003"), (true, "unknown")] {
            let refusal = refusal(2000, 1000, compressed).await;
            let error = explain_size_limit(&refusal, 1000);
            let error = error.unwrap_or_else(|| panic!("{refusal:?}"));
            assert_eq!(error.reason(), Reason::MessageTooLarge);
            assert_eq!(error.fact("size"), Some(size), "{refusal:?}");
            assert_eq!(error.fact("limit"), Some("1000"));
        }
    }

    #[test]
    fn leaves_other_errors_alone() {
        for status in [
            Status::out_of_range("another limit"),
            Status::resource_exhausted("the queue is full"),
            Status::internal("decoded message length too large"),
            crate::status::encode(&decode(&Status::resource_exhausted(
                "while decompressing message",
            ))),
        ] {
            assert!(explain_size_limit(&status, 1000).is_none(), "{status:?}");
        }
    }
}
