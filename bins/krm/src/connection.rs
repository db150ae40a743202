//! Flags of the connection to a runner, and the client made from them.

mod errors;
mod tls;

use std::time::Duration;

use clap::Args;
use runner_client::{
    Client, EvaluateFunctionRequest, EvaluateFunctionResponse, Options, OptionsError,
};
use runner_core::{defaults, parse_worded_duration, with_causes};

pub use errors::failure;
pub use tls::Tls;

use crate::failure::Failure;

/// The address of a function runner.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Server {
    /// Address of the function runner
    #[arg(long, value_name = "HOST:PORT", default_value = defaults::RUNNER_ADDRESS)]
    address: String,

    #[command(flatten)]
    tls: Tls,
}

/// The connection for an evaluation and its limits.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    #[command(flatten)]
    server: Server,

    /// Time limit of the evaluation; the runner stops the function after it
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_worded_duration)]
    timeout: Duration,

    /// Size limit of a resource list in bytes, sent or received; the runner's own limit is its flag
    /// --max-request-body-size
    #[arg(long, value_name = "BYTES", default_value_t = defaults::MAX_MESSAGE_SIZE)]
    max_message_size: usize,
}

// === impl Connection ===

impl Connection {
    /// Evaluates one function.
    ///
    /// # Errors
    /// Returns a failure if the list is larger than `--max-message-size`, the runner cannot be
    /// reached, or the evaluation fails.
    pub async fn evaluate(
        &self,
        request: EvaluateFunctionRequest,
    ) -> Result<EvaluateFunctionResponse, Failure> {
        let options = Options::default();
        let client = self.server.client(Options {
            connect_timeout: self.timeout.min(options.connect_timeout),
            message_limit: self.max_message_size,
            ..options
        })?;
        let response = client.evaluate(request, self.timeout).await;
        response.map_err(|error| failure(&error))
    }
}

// === impl Server ===

impl Server {
    /// Returns the server at an address.
    #[must_use]
    pub fn at(address: String, tls: Tls) -> Self {
        Self { address, tls }
    }

    /// Returns a client of the server, which connects on its first call.
    ///
    /// # Errors
    /// Returns a failure if the address or the TLS files are invalid.
    pub fn client(&self, mut options: Options) -> Result<Client, Failure> {
        "krm".clone_into(&mut options.program);
        options.tls = self.tls.read()?;
        Client::new(&self.address, &options).map_err(|error| match error {
            OptionsError::Tls(_) => Failure::usage(with_causes(&error))
                .hint("check the files of --ca-file, --cert-file and --key-file"),
            OptionsError::Scheme { .. } => Failure::usage(format!("--address {error}"))
                .hint("leave the scheme out; --tls turns TLS on"),
            _ => Failure::usage(format!("--address {}", with_causes(&error))),
        })
    }
}
