//! The client: one lazily established connection, one method for each remote procedure.

use std::{sync::OnceLock, time::Duration};

use prost::Message;
use runner_core::defaults;
use runner_proto::{
    evaluator::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_client::FunctionEvaluatorClient,
    },
    health::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    },
    runner_status::{
        GetStatusRequest, GetStatusResponse, runner_status_client::RunnerStatusClient,
    },
};
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{CallError, Options, OptionsError, error::Call};

/// A client of one function runner.
///
/// Concurrent calls share the connection. Each call has a time limit, which the server gets as the
/// deadline; the time for connecting ([`Options::connect_timeout`]) comes on top.
#[derive(Debug)]
pub struct Client {
    address: String,
    endpoint: Endpoint,
    message_limit: usize,
    /// The connection, created by the first call: creating it requires a tokio runtime.
    channel: OnceLock<Channel>,
}

// === impl Client ===

impl Client {
    /// Creates a client of the runner at `address` (HOST:PORT); does not connect yet.
    ///
    /// # Errors
    /// Returns an error if the address or the TLS settings are invalid.
    pub fn new(address: &str, options: &Options) -> Result<Self, OptionsError> {
        Ok(Self {
            address: address.to_owned(),
            endpoint: options.endpoint(address)?,
            message_limit: options.message_limit,
            channel: OnceLock::new(),
        })
    }

    /// Returns the runner's address as it was given.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Evaluates one function over one ResourceList.
    ///
    /// # Errors
    /// Returns an error if the request or the response is over the message limit, the runner
    /// cannot be reached, or the evaluation fails.
    pub async fn evaluate(
        &self,
        request: EvaluateFunctionRequest,
        timeout: Duration,
    ) -> Result<EvaluateFunctionResponse, CallError> {
        let (size, limit) = (request.encoded_len(), self.message_limit);
        if size > limit {
            return Err(CallError::RequestTooLarge { size, limit });
        }
        let mut client = FunctionEvaluatorClient::new(self.channel())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit);
        let response = client.evaluate_function(within(timeout, request)).await;
        self.answer("evaluator.FunctionEvaluator", timeout, response)
    }

    /// Returns the runner's state: functions, pods, queues.
    ///
    /// # Errors
    /// Returns an error if the runner cannot be reached or does not offer the status service.
    pub async fn status(&self, timeout: Duration) -> Result<GetStatusResponse, CallError> {
        let mut client = RunnerStatusClient::new(self.channel())
            .max_decoding_message_size(defaults::MAX_REPORT_SIZE);
        let response = client
            .get_status(within(timeout, GetStatusRequest {}))
            .await;
        self.answer("krm.status.v1.RunnerStatus", timeout, response)
    }

    /// Returns the health of one of the runner's services; `""` names the server as a whole.
    ///
    /// # Errors
    /// Returns an error if the runner cannot be reached or does not offer the health service.
    pub async fn health(
        &self,
        service: &str,
        timeout: Duration,
    ) -> Result<ServingStatus, CallError> {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut client = HealthClient::new(self.channel());
        let response = client.check(within(timeout, request)).await;
        let health = self.answer("grpc.health.v1.Health", timeout, response)?;
        Ok(health.status())
    }

    fn channel(&self) -> Channel {
        let channel = self.channel.get_or_init(|| self.endpoint.connect_lazy());
        channel.clone()
    }

    fn answer<T>(
        &self,
        service: &'static str,
        timeout: Duration,
        response: Result<Response<T>, Status>,
    ) -> Result<T, CallError> {
        let call = Call {
            address: &self.address,
            service,
            timeout,
        };
        response
            .map(Response::into_inner)
            .map_err(|status| CallError::of(status, &call))
    }
}

fn within<T>(timeout: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}
