//! A gRPC client like the one in Porch.

use std::{net::SocketAddr, path::Path, time::Duration};

use runner_core::EvaluationError;
use runner_proto::{
    evaluator::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_client::FunctionEvaluatorClient,
    },
    health::health_client::HealthClient,
    runner_status::{
        GetStatusRequest, GetStatusResponse, runner_status_client::RunnerStatusClient,
    },
    status,
};
use tonic::{
    Code, Status,
    codec::CompressionEncoding,
    transport::{Channel, Endpoint},
};

use crate::LIMIT;

/// A small ResourceList with a function configuration; items may be appended to it.
pub const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  data: {label: tier, value: front, namespace: there}
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings # kept
";

/// The result of an evaluation.
pub type Answer = Result<EvaluateFunctionResponse, Status>;

/// A connection to the server, shared by its clones.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
}

/// A request with its time limit and compression.
#[derive(Clone, Debug)]
pub struct Request {
    message: EvaluateFunctionRequest,
    timeout: Option<Duration>,
    gzip: bool,
}

// === impl Client ===

impl Client {
    /// Connects to a server without TLS.
    pub async fn to(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = tokio::time::timeout(LIMIT, endpoint.connect()).await;
        Self::over(channel.unwrap().unwrap())
    }

    /// Uses an existing connection.
    #[must_use]
    pub fn over(channel: Channel) -> Self {
        Self { channel }
    }

    /// Calls `example.com/fn/NAME:v1` with [`LIST`].
    pub async fn call(&self, name: &str) -> Answer {
        self.send(Request::of(name)).await
    }

    /// Evaluates a function and waits for the response, at most [`LIMIT`].
    pub async fn send(&self, request: Request) -> Answer {
        let mut client = FunctionEvaluatorClient::new(self.channel.clone())
            .max_decoding_message_size(64 << 20)
            .max_encoding_message_size(1 << 30);
        if request.gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let mut message = tonic::Request::new(request.message);
        if let Some(timeout) = request.timeout {
            message.set_timeout(timeout);
        }
        let answer = tokio::time::timeout(LIMIT, client.evaluate_function(message)).await;
        answer
            .unwrap_or_else(|_| panic!("no answer within {LIMIT:?}"))
            .map(tonic::Response::into_inner)
    }

    /// Returns a client of the health service.
    #[must_use]
    pub fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel.clone())
    }

    /// Returns the status of a runner.
    pub async fn status(&self) -> GetStatusResponse {
        let mut client = RunnerStatusClient::new(self.channel.clone());
        let call = client.get_status(GetStatusRequest {});
        let answer = tokio::time::timeout(LIMIT, call).await.unwrap();
        answer.unwrap().into_inner()
    }
}

// === impl Request ===

impl Request {
    /// Returns a request for `example.com/fn/NAME:v1` with [`LIST`].
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self::image(format!("example.com/fn/{name}:v1"))
    }

    /// Returns a request for an image with [`LIST`].
    pub fn image(image: impl Into<String>) -> Self {
        let message = EvaluateFunctionRequest {
            resource_list: LIST.into(),
            image: image.into(),
            ..EvaluateFunctionRequest::default()
        };
        Self {
            message,
            timeout: None,
            gzip: false,
        }
    }

    /// Sets the tag or version constraint.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Self {
        tag.clone_into(&mut self.message.tag);
        self
    }

    /// Sets the path of an executable.
    #[must_use]
    pub fn exec_path(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_str().unwrap();
        path.clone_into(&mut self.message.exec_path);
        self
    }

    /// Replaces the ResourceList.
    #[must_use]
    pub fn list(mut self, list: impl Into<bytes::Bytes>) -> Self {
        self.message.resource_list = list.into();
        self
    }

    /// Sets the deadline, which the client sends as `grpc-timeout`.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Compresses the request.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        self.gzip = true;
        self
    }
}

/// Returns the list of a successful response as text.
#[must_use]
pub fn list_of(answer: Answer) -> String {
    String::from_utf8(successful(answer).resource_list.to_vec()).unwrap()
}

/// Returns the log of a successful response as text.
#[must_use]
pub fn log_of(answer: Answer) -> String {
    String::from_utf8(successful(answer).log.to_vec()).unwrap()
}

fn successful(answer: Answer) -> EvaluateFunctionResponse {
    answer.unwrap_or_else(|status| panic!("{status:?}"))
}

/// Returns the error of a failed call.
///
/// The error must have this code and details; a status created by the client itself has none.
pub fn error_of(answer: Answer, code: Code) -> EvaluationError {
    let status = match answer {
        Err(status) => status,
        Ok(response) => panic!("{code:?} expected: {response:?}"),
    };
    assert_eq!(status.code(), code, "{status:?}");
    assert!(!status.details().is_empty(), "no details: {status:?}");
    status::decode(&status)
}
