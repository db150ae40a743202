//! Connection to a runner: address, TLS, deadline and the meaning of its errors.

mod errors;
mod tls;

use std::{error::Error, time::Duration};

use bytes::Bytes;
use clap::Args;
use runner_core::{defaults, parse_worded_duration};
use runner_proto::{
    evaluator::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_client::FunctionEvaluatorClient,
    },
    status::{HEADER_ROOM, OWN_AGENT},
};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

pub use tls::Tls;

use crate::failure::Failure;

/// Where a function runner is.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Server {
    /// The function runner's address
    #[arg(long, value_name = "HOST:PORT", default_value = defaults::RUNNER_ADDRESS)]
    address: String,

    #[command(flatten)]
    tls: Tls,
}

/// How to evaluate at a function runner.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    #[command(flatten)]
    server: Server,

    /// How long to wait for the answer; the runner is told and stops the function then
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_worded_duration)]
    timeout: Duration,

    /// The largest resource list to send or receive, in bytes; the runner's own limit is its
    /// --max-request-body-size
    #[arg(long, value_name = "BYTES", default_value_t = defaults::MAX_MESSAGE_SIZE)]
    max_message_size: usize,
}

/// A request for one evaluation.
#[derive(Debug)]
pub struct Call<'a> {
    /// The function's image.
    pub image: &'a str,
    /// Tag or constraint that selects among the image's tags; empty for the tag in `image`.
    pub tag: &'a str,
    /// The input ResourceList.
    pub resource_list: Bytes,
}

// === impl Connection ===

impl Connection {
    /// Evaluates one function.
    ///
    /// # Errors
    /// Returns a failure if the list is larger than `--max-message-size`, the runner cannot be
    /// reached, or the evaluation fails.
    pub fn evaluate(&self, call: Call<'_>) -> Result<EvaluateFunctionResponse, Failure> {
        let size = call.resource_list.len() + call.image.len() + call.tag.len() + 32;
        if size > self.max_message_size {
            return Err(Failure::failed(format!(
                "the resource list is too large to send: {size} bytes, the limit is {}",
                self.max_message_size
            ))
            .hint("raise --max-message-size here and --max-request-body-size at the runner"));
        }
        runtime()?.block_on(async {
            let channel = self.server.connect(self.timeout).await?;
            self.call(channel, call).await
        })
    }

    async fn call(
        &self,
        channel: Channel,
        call: Call<'_>,
    ) -> Result<EvaluateFunctionResponse, Failure> {
        let mut client = FunctionEvaluatorClient::new(channel)
            .max_decoding_message_size(self.max_message_size)
            .max_encoding_message_size(self.max_message_size);
        let mut request = Request::new(EvaluateFunctionRequest {
            resource_list: call.resource_list,
            image: call.image.to_owned(),
            tag: call.tag.to_owned(),
            ..EvaluateFunctionRequest::default()
        });
        request.set_timeout(self.timeout);
        match client.evaluate_function(request).await {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(errors::failure(&status, call.image, self)),
        }
    }
}

// === impl Server ===

impl Server {
    /// Returns the server at an address.
    #[must_use]
    pub fn at(address: String, tls: Tls) -> Self {
        Self { address, tls }
    }

    /// Returns the address as it was given.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Connects to the server and returns the established connection.
    ///
    /// # Errors
    /// Returns a failure if the address or the TLS files are invalid, or if no server answers
    /// within `patience` (at most 10 s).
    pub async fn connect(&self, patience: Duration) -> Result<Channel, Failure> {
        let endpoint = self.endpoint(patience)?;
        endpoint.connect().await.map_err(|error| {
            Failure::unreachable(format!(
                "cannot reach a function runner at {}: {}",
                self.address,
                innermost(&error)
            ))
            .hint("start one with `function-runner`, or name another with --address")
        })
    }

    fn endpoint(&self, patience: Duration) -> Result<Endpoint, Failure> {
        let tls = self.tls.config()?;
        let address = self
            .address
            .strip_prefix("dns:///")
            .unwrap_or(&self.address);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (given, host) = address.split_once("://").unwrap_or((scheme, address));
        let bad = |reason: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "--address {:?} is not HOST:PORT: {reason}",
                self.address
            ))
        };
        if given != scheme {
            return Err(bad(&format!(
                "{given} does not fit the --tls flags, which mean {scheme}"
            )));
        }
        let endpoint = Endpoint::from_shared(format!("{scheme}://{host}")).map_err(|e| bad(&e))?;
        if endpoint.uri().port().is_none() {
            return Err(bad(&"the port is missing"));
        }
        let endpoint = endpoint
            .connect_timeout(patience.min(Duration::from_secs(10)))
            .user_agent(format!("{OWN_AGENT}{} krm", env!("CARGO_PKG_VERSION")))
            .map_err(|error| bad(&error))?
            .http2_max_header_list_size(HEADER_ROOM);
        match tls {
            None => Ok(endpoint),
            Some(tls) => endpoint
                .tls_config(tls)
                .map_err(|error| Failure::usage(format!("bad TLS files: {}", innermost(&error)))),
        }
    }
}

/// Returns the message of the innermost cause, which is the most specific one.
#[must_use]
pub fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Creates the tokio runtime of a command: one thread, because a command does one thing at a time.
///
/// # Errors
/// Returns a failure if the operating system refuses.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}
