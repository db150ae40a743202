//! Messages sent as they lie in memory.
//!
//! tonic copies a message into one buffer before it sends it: for a resource list of megabytes a
//! second copy resident, and the time to make it. Here the list itself is a piece of the body,
//! between pieces of a few bytes that make a message of it.
//!
//! A sender puts an [`Uncopied`] into the extensions of a request or an answer whose message is
//! empty; whoever holds the HTTP message then [takes](Uncopied::take_from) it out as the body.

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

/// Shorter fields are copied: pieces cost more than that.
const WORTH_IT: usize = 64 << 10;

/// gRPC's own prefix: a byte that says "not compressed", and the length in four.
const PREFIX: usize = 5;

/// A message in pieces.
#[derive(Clone, Debug)]
pub struct Uncopied {
    pieces: VecDeque<Bytes>,
    /// What a server ends a good answer with.
    trailers: Option<HeaderMap>,
}

/// A client's channel that sends uncopied requests.
#[derive(Clone, Debug)]
pub struct Uncopying<S>(pub S);

// === impl Uncopied ===

impl Uncopied {
    /// A request, for a client whose channel is [`Uncopying`]. A short one gains too: its body says
    /// with its last piece that it ends there; tonic says so afterwards, and the server wakes up for it.
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

    /// An answer; given back if it is not worth it, or longer than the limit.
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

    /// The body that goes in place of the empty message's, if a sender wants that.
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

/// A message whose fields are these, numbered from 1, as gRPC sends it.
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

    /// As tonic would have sent it.
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
    fn the_list_itself_is_on_its_way() {
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
    fn a_short_request_is_one_piece_and_its_end() {
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
