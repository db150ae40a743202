//! gRPC messages in several segments, which are sent without copying the resource list.
//!
//! tonic copies a message into one buffer before it sends it. For a resource list of several
//! megabytes, that is a second resident copy and the time to make it. Here the list itself is one
//! segment of the body, between segments of a few bytes that complete the encoded message.
//!
//! A sender puts an [`SegmentedMessage`] into the extensions of a request or response whose message is
//! empty. The layer that handles the HTTP message [takes](SegmentedMessage::take_from) it out and uses it
//! as the body.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{Extensions, HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::{Request, codegen::Service};

use crate::evaluator::{EvaluateFunctionRequest, EvaluateFunctionResponse};

/// Length in bytes from which a field is not copied (64 KiB).
///
/// For shorter fields, a separate segment costs more than the copy.
const LONG_FIELD: usize = 64 << 10;

/// Length in bytes of the gRPC message prefix: the compression flag (1) and the message length (4).
const PREFIX: usize = 5;

/// A gRPC message as a body of several segments.
#[derive(Clone, Debug)]
pub struct SegmentedMessage {
    segments: VecDeque<Bytes>,
    /// Trailers of a successful response (`grpc-status: 0`); none for a request.
    trailers: Option<HeaderMap>,
}

/// A client channel that sends the [`SegmentedMessage`] of a request as its body.
#[derive(Clone, Debug)]
pub struct SegmentedChannel<S>(pub S);

// === impl SegmentedMessage ===

impl SegmentedMessage {
    /// Returns a request for a client whose channel is [`SegmentedChannel`].
    ///
    /// Short requests benefit too: the last segment of this body also ends the stream. tonic ends the
    /// stream in a separate frame, for which the server wakes up once more.
    #[must_use]
    pub fn request(message: EvaluateFunctionRequest) -> Request<EvaluateFunctionRequest> {
        let mut request = Request::new(EvaluateFunctionRequest::default());
        request.extensions_mut().insert(Self::of_request(message));
        request
    }

    fn of_request(message: EvaluateFunctionRequest) -> Self {
        let fields = [
            message.resource_list,
            Bytes::from(message.image),
            Bytes::from(message.tag),
            Bytes::from(message.exec_path),
        ];
        Self {
            segments: segments(&fields),
            trailers: None,
        }
    }

    /// Returns a response in segments.
    ///
    /// # Errors
    /// Returns the message itself if its resource list is shorter than 64 KiB, or if the encoded
    /// message is longer than `limit` bytes.
    pub fn response(
        message: EvaluateFunctionResponse,
        limit: usize,
    ) -> Result<Self, EvaluateFunctionResponse> {
        let length = prost::Message::encoded_len(&message);
        if message.resource_list.len() < LONG_FIELD || length > limit {
            return Err(message);
        }
        let ok =
            HeaderMap::from_iter([(tonic::Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
        Ok(Self {
            segments: segments(&[message.resource_list, message.log]),
            trailers: Some(ok),
        })
    }

    /// Removes and returns the body that replaces that of the empty message, if a sender set one.
    #[must_use]
    pub fn take_from(extensions: &mut Extensions) -> Option<tonic::body::Body> {
        extensions.remove::<Self>().map(tonic::body::Body::new)
    }
}

impl Body for SegmentedMessage {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let segment = self.segments.pop_front().map(Frame::data);
        let frame = segment.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.segments.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length: usize = self.segments.iter().map(Bytes::len).sum();
        SizeHint::with_exact(length as u64)
    }
}

// === impl SegmentedChannel ===

impl<S: Service<http::Request<tonic::body::Body>>> Service<http::Request<tonic::body::Body>>
    for SegmentedChannel<S>
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<tonic::body::Body>) -> S::Future {
        if let Some(body) = SegmentedMessage::take_from(request.extensions_mut()) {
            *request.body_mut() = body;
        }
        self.0.call(request)
    }
}

/// Encodes a message with these fields, numbered from 1, including the gRPC prefix.
fn segments(fields: &[Bytes]) -> VecDeque<Bytes> {
    let numbered = || (1..).zip(fields).filter(|(_, field)| !field.is_empty());
    let length: usize = numbered()
        .map(|(number, field)| {
            key_len(number) + encoded_len_varint(field.len() as u64) + field.len()
        })
        .sum();
    let mut segments = VecDeque::new();
    let short: usize = fields
        .iter()
        .map(Bytes::len)
        .filter(|it| *it < LONG_FIELD)
        .sum();
    let mut head = BytesMut::with_capacity(PREFIX + 16 + short);
    head.put_u8(0);
    head.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    for (number, field) in numbered() {
        encode_key(number, WireType::LengthDelimited, &mut head);
        encode_varint(field.len() as u64, &mut head);
        if field.len() < LONG_FIELD {
            head.put_slice(field);
        } else {
            segments.push_back(head.split().freeze());
            segments.push_back(field.clone());
        }
    }
    if !head.is_empty() {
        segments.push_back(head.freeze());
    }
    segments
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::evaluator::{
        function_evaluator_client::FunctionEvaluatorClient,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    };

    fn list() -> Bytes {
        Bytes::from(vec![b'x'; LONG_FIELD])
    }

    /// Returns the bytes that tonic would send.
    fn encoded_by_tonic(message: &impl Message) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut bytes).unwrap();
        bytes
    }

    fn sent(segmented: &SegmentedMessage) -> Vec<u8> {
        segmented.segments.iter().flatten().copied().collect()
    }

    #[test]
    fn encodes_a_message_as_prost_does() {
        for (image, tag) in [("example.com/a:v1", ""), ("a", ">= 1.0"), ("", "")] {
            let message = EvaluateFunctionRequest {
                resource_list: list(),
                image: image.to_owned(),
                tag: tag.to_owned(),
                exec_path: tag.to_owned(),
            };
            let segmented = SegmentedMessage::of_request(message.clone());
            assert_eq!(sent(&segmented), encoded_by_tonic(&message));
        }
        for log in [Bytes::new(), Bytes::from_static(b"said"), list()] {
            let message = EvaluateFunctionResponse {
                resource_list: list(),
                log,
            };
            let segmented = SegmentedMessage::response(message.clone(), usize::MAX).unwrap();
            assert_eq!(sent(&segmented), encoded_by_tonic(&message));
        }
    }

    #[test]
    fn sends_the_resource_list_without_a_copy() {
        let list = list();
        let message = EvaluateFunctionResponse {
            resource_list: list.clone(),
            log: Bytes::new(),
        };
        let segmented = SegmentedMessage::response(message, usize::MAX).unwrap();
        assert!(
            segmented
                .segments
                .iter()
                .any(|it| it.as_ptr() == list.as_ptr())
        );
    }

    #[test]
    fn ends_the_stream_with_the_only_segment_of_a_short_request() {
        let message = EvaluateFunctionRequest {
            resource_list: Bytes::from_static(b"items: []"),
            image: "example.com/a:v1".to_owned(),
            ..EvaluateFunctionRequest::default()
        };
        let segmented = SegmentedMessage::of_request(message.clone());
        assert_eq!(sent(&segmented), encoded_by_tonic(&message));
        let mut body = tonic::body::Body::new(segmented);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let segment = Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(segment, Poll::Ready(Some(Ok(_)))));
        assert!(body.is_end_stream());
    }

    struct Echo;

    #[tonic::async_trait]
    impl FunctionEvaluator for Echo {
        async fn evaluate_function(
            &self,
            request: Request<EvaluateFunctionRequest>,
        ) -> Result<tonic::Response<EvaluateFunctionResponse>, tonic::Status> {
            let request = request.into_inner();
            Ok(tonic::Response::new(EvaluateFunctionResponse {
                resource_list: request.resource_list,
                log: request.image.into(),
            }))
        }
    }

    #[tokio::test]
    async fn a_server_of_tonic_decodes_a_segmented_request() {
        let server = FunctionEvaluatorServer::new(Echo);
        let mut client = FunctionEvaluatorClient::new(SegmentedChannel(server));
        for resource_list in [list(), Bytes::from_static(b"items: []")] {
            let request = SegmentedMessage::request(EvaluateFunctionRequest {
                resource_list: resource_list.clone(),
                image: "example.com/a:v1".to_owned(),
                ..EvaluateFunctionRequest::default()
            });
            let response = client
                .evaluate_function(request)
                .await
                .unwrap()
                .into_inner();
            assert_eq!(response.resource_list, resource_list);
            assert_eq!(response.log, "example.com/a:v1");
        }
    }

    #[test]
    fn leaves_short_responses_and_those_over_the_limit_to_tonic() {
        let short = EvaluateFunctionResponse {
            resource_list: Bytes::from_static(b"items: []"),
            log: Bytes::new(),
        };
        let left = SegmentedMessage::response(short.clone(), usize::MAX).unwrap_err();
        assert_eq!(left, short);
        let long = EvaluateFunctionResponse {
            resource_list: list(),
            log: Bytes::new(),
        };
        assert!(SegmentedMessage::response(long, LONG_FIELD).is_err());
    }
}
