//! gRPC messages that are sent without copying the resource list.
//!
//! tonic copies a message into one buffer before it sends it. For a resource list of several
//! megabytes, that is a second resident copy and the time to make it. Here the list itself is one
//! piece of the body, between pieces of a few bytes that complete the encoded message.
//!
//! A sender puts an [`Uncopied`] into the extensions of a request or response whose message is
//! empty. The layer that handles the HTTP message [takes](Uncopied::take_from) it out and uses it
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
/// For shorter fields, a separate piece costs more than the copy.
const WORTH_IT: usize = 64 << 10;

/// Length in bytes of the gRPC message prefix: the compression flag (1) and the message length (4).
const PREFIX: usize = 5;

/// A gRPC message as a body of several pieces.
#[derive(Clone, Debug)]
pub struct Uncopied {
    pieces: VecDeque<Bytes>,
    /// Trailers of a successful response (`grpc-status: 0`); none for a request.
    trailers: Option<HeaderMap>,
}

/// A client channel that sends the [`Uncopied`] of a request as its body.
#[derive(Clone, Debug)]
pub struct Uncopying<S>(pub S);

// === impl Uncopied ===

impl Uncopied {
    /// Returns a request for a client whose channel is [`Uncopying`].
    ///
    /// Short requests benefit too: the last piece of this body also ends the stream. tonic ends the
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
            pieces: pieces(&fields),
            trailers: None,
        }
    }

    /// Returns a response in pieces.
    ///
    /// # Errors
    /// Returns the message itself if its resource list is shorter than 64 KiB, or if the encoded
    /// message is longer than `limit` bytes.
    pub fn response(
        message: EvaluateFunctionResponse,
        limit: usize,
    ) -> Result<Self, EvaluateFunctionResponse> {
        let length = prost::Message::encoded_len(&message);
        if message.resource_list.len() < WORTH_IT || length > limit {
            return Err(message);
        }
        let ok =
            HeaderMap::from_iter([(tonic::Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
        Ok(Self {
            pieces: pieces(&[message.resource_list, message.log]),
            trailers: Some(ok),
        })
    }

    /// Removes and returns the body that replaces that of the empty message, if a sender set one.
    #[must_use]
    pub fn take_from(extensions: &mut Extensions) -> Option<tonic::body::Body> {
        extensions.remove::<Self>().map(tonic::body::Body::new)
    }
}

impl Body for Uncopied {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front().map(Frame::data);
        let frame = piece.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length: usize = self.pieces.iter().map(Bytes::len).sum();
        SizeHint::with_exact(length as u64)
    }
}

// === impl Uncopying ===

impl<S: Service<http::Request<tonic::body::Body>>> Service<http::Request<tonic::body::Body>>
    for Uncopying<S>
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<tonic::body::Body>) -> S::Future {
        if let Some(body) = Uncopied::take_from(request.extensions_mut()) {
            *request.body_mut() = body;
        }
        self.0.call(request)
    }
}

/// Encodes a message with these fields, numbered from 1, including the gRPC prefix.
fn pieces(fields: &[Bytes]) -> VecDeque<Bytes> {
    let numbered = || (1..).zip(fields).filter(|(_, field)| !field.is_empty());
    let length: usize = numbered()
        .map(|(number, field)| {
            key_len(number) + encoded_len_varint(field.len() as u64) + field.len()
        })
        .sum();
    let mut pieces = VecDeque::new();
    let short: usize = fields
        .iter()
        .map(Bytes::len)
        .filter(|it| *it < WORTH_IT)
        .sum();
    let mut head = BytesMut::with_capacity(PREFIX + 16 + short);
    head.put_u8(0);
    head.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    for (number, field) in numbered() {
        encode_key(number, WireType::LengthDelimited, &mut head);
        encode_varint(field.len() as u64, &mut head);
        if field.len() < WORTH_IT {
            head.put_slice(field);
        } else {
            pieces.push_back(head.split().freeze());
            pieces.push_back(field.clone());
        }
    }
    if !head.is_empty() {
        pieces.push_back(head.freeze());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn list() -> Bytes {
        Bytes::from(vec![b'x'; WORTH_IT])
    }

    /// Returns the bytes that tonic would send.
    fn copied(message: &impl Message) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut bytes).unwrap();
        bytes
    }

    fn sent(uncopied: &Uncopied) -> Vec<u8> {
        uncopied.pieces.iter().flatten().copied().collect()
    }

    #[test]
    fn the_bytes_on_the_wire_are_those_of_the_message() {
        for (image, tag) in [("example.com/a:v1", ""), ("a", ">= 1.0"), ("", "")] {
            let message = EvaluateFunctionRequest {
                resource_list: list(),
                image: image.to_owned(),
                tag: tag.to_owned(),
                exec_path: tag.to_owned(),
            };
            let uncopied = Uncopied::of_request(message.clone());
            assert_eq!(sent(&uncopied), copied(&message));
        }
        for log in [Bytes::new(), Bytes::from_static(b"said"), list()] {
            let message = EvaluateFunctionResponse {
                resource_list: list(),
                log,
            };
            let uncopied = Uncopied::response(message.clone(), usize::MAX).unwrap();
            assert_eq!(sent(&uncopied), copied(&message));
        }
    }

    #[test]
    fn sends_the_resource_list_without_a_copy() {
        let list = list();
        let message = EvaluateFunctionResponse {
            resource_list: list.clone(),
            log: Bytes::new(),
        };
        let uncopied = Uncopied::response(message, usize::MAX).unwrap();
        assert!(
            uncopied
                .pieces
                .iter()
                .any(|it| it.as_ptr() == list.as_ptr())
        );
    }

    #[test]
    fn ends_the_stream_with_the_only_piece_of_a_short_request() {
        let message = EvaluateFunctionRequest {
            resource_list: Bytes::from_static(b"items: []"),
            image: "example.com/a:v1".to_owned(),
            ..EvaluateFunctionRequest::default()
        };
        let uncopied = Uncopied::of_request(message.clone());
        assert_eq!(sent(&uncopied), copied(&message));
        let mut body = tonic::body::Body::new(uncopied);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let piece = Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(piece, Poll::Ready(Some(Ok(_)))));
        assert!(body.is_end_stream());
    }

    #[test]
    fn short_answers_and_those_over_the_limit_are_left_to_tonic() {
        let short = EvaluateFunctionResponse {
            resource_list: Bytes::from_static(b"items: []"),
            log: Bytes::new(),
        };
        let left = Uncopied::response(short.clone(), usize::MAX).unwrap_err();
        assert_eq!(left, short);
        let long = EvaluateFunctionResponse {
            resource_list: list(),
            log: Bytes::new(),
        };
        assert!(Uncopied::response(long, WORTH_IT).is_err());
    }
}
