//! A caller with one connection, like that of a Porch server.
//!
//! Porch's gRPC library sends a request in one write. tonic's client needs two writes with a turn
//! of its runtime in between, and the server would wait for the second: the client's time, not the
//! runner's. This client therefore uses HTTP/2 directly.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::try_join_all;
use h2::client::{self, SendRequest};
use http::{Request, header};
use prost::Message;
use runner_proto::evaluator::{EvaluateFunctionRequest, EvaluateFunctionResponse};
use tokio::net::TcpStream;

use crate::{functions::Function, line::Line, samples::Samples};

/// HTTP/2 window in bytes, large enough for a ResourceList of the default size limit.
const WINDOW: u32 = 8 << 20;

const PATH: &str = "/evaluator.FunctionEvaluator/EvaluateFunction";

/// Length of gRPC's message prefix: one byte for "not compressed" and four bytes of length.
const PREFIX: usize = 5;

/// A client that evaluates one function on one server; clones share the connection.
#[derive(Clone)]
pub(crate) struct Client {
    connection: SendRequest<Bytes>,
    address: SocketAddr,
    image: String,
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: SocketAddr, function: Function) -> Result<Self> {
        Self::for_image(address, function.image()).await
    }

    pub(crate) async fn for_image(address: SocketAddr, image: String) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .context("cannot reach the server")?;
        stream.set_nodelay(true)?;
        let (connection, driver) = client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await?;
        tokio::spawn(driver);
        Ok(Self {
            connection,
            address,
            image,
        })
    }

    pub(crate) async fn evaluate(&self, list: &Bytes) -> Result<Bytes> {
        let request = Request::post(format!("http://{}{PATH}", self.address))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .body(())?;
        let mut connection = self.connection.clone().ready().await?;
        let (answer, mut body) = connection.send_request(request, false)?;
        body.send_data(self.message(list)?, true)?;
        let (head, mut body) = answer.await?.into_parts();
        let mut message = BytesMut::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            message.extend_from_slice(&piece);
        }
        // A refused call has no body, and its headers are its trailers.
        let trailers = body.trailers().await?.unwrap_or(head.headers);
        let status = trailers.get("grpc-status").context("no gRPC status")?;
        ensure!(
            status == "0" && message.len() >= PREFIX,
            "the evaluation fails: {trailers:?}"
        );
        message.advance(PREFIX);
        let answer = EvaluateFunctionResponse::decode(message.freeze())?;
        Ok(answer.resource_list)
    }

    fn message(&self, list: &Bytes) -> Result<Bytes> {
        let request = EvaluateFunctionRequest {
            resource_list: list.clone(),
            image: self.image.clone(),
            ..EvaluateFunctionRequest::default()
        };
        let length = request.encoded_len();
        let mut message = BytesMut::with_capacity(PREFIX + length);
        message.put_u8(0);
        message.put_u32(u32::try_from(length)?);
        request.encode(&mut message)?;
        Ok(message.freeze())
    }

    /// Opens a line to the same server, for calls of the same function with one list.
    pub(crate) fn line(&self, list: &Bytes) -> Result<Line> {
        Line::open(self.address, PATH, self.message(list)?.to_vec())
    }

    /// Returns the duration of one evaluation.
    pub(crate) async fn time(&self, list: &Bytes) -> Result<Duration> {
        let started = Instant::now();
        self.evaluate(list).await?;
        Ok(started.elapsed())
    }

    /// Runs this many concurrent callers for a time; returns each call's duration and the calls per
    /// second.
    pub(crate) async fn crowd(
        &self,
        list: &Bytes,
        callers: usize,
        span: Duration,
    ) -> Result<(Samples, f64)> {
        let started = Instant::now();
        let caller = async || -> Result<Samples> {
            let mut samples = Samples::default();
            while started.elapsed() < span {
                samples.push(self.time(list).await?);
            }
            Ok(samples)
        };
        let all: Samples = try_join_all((0..callers).map(|_| caller()))
            .await?
            .into_iter()
            .collect();
        let rate = all.len() as f64 / started.elapsed().as_secs_f64();
        Ok((all, rate))
    }
}
