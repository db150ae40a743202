//! The caller: one connection, as a Porch server holds it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::future::try_join_all;
use runner_proto::{
    Uncopied, Uncopying,
    evaluator::{EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient},
};
use tonic::transport::{Channel, Endpoint};

use crate::{functions::Function, samples::Samples};

const LIMIT: usize = 64 << 20;

/// The most that a list of the default limit needs.
const WINDOW: u32 = 8 << 20;

/// Evaluations of one function at one server. Clones share the connection.
#[derive(Clone)]
pub(crate) struct Client {
    service: FunctionEvaluatorClient<Uncopying<Channel>>,
    image: String,
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: SocketAddr, function: Function) -> Result<Self> {
        Self::for_image(address, function.image()).await
    }

    pub(crate) async fn for_image(address: SocketAddr, image: String) -> Result<Self> {
        let channel = Endpoint::from_shared(format!("http://{address}"))?
            .tcp_nodelay(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .connect()
            .await
            .context("cannot reach the server")?;
        Ok(Self {
            service: FunctionEvaluatorClient::new(Uncopying(channel))
                .max_decoding_message_size(LIMIT)
                .max_encoding_message_size(LIMIT),
            image,
        })
    }

    pub(crate) async fn evaluate(&self, list: &Bytes) -> Result<Bytes> {
        // The end comes with the message, as Porch's client tells it, too.
        let request = Uncopied::request(EvaluateFunctionRequest {
            resource_list: list.clone(),
            image: self.image.clone(),
            tag: String::new(),
        });
        let answer = self.service.clone().evaluate_function(request).await?;
        Ok(answer.into_inner().resource_list)
    }

    /// How long one evaluation takes.
    pub(crate) async fn time(&self, list: &Bytes) -> Result<Duration> {
        let started = Instant::now();
        self.evaluate(list).await?;
        Ok(started.elapsed())
    }

    /// Keeps so many callers calling for a while; returns each call's time and calls a second.
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
