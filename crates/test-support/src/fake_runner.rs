//! A gRPC server whose only function a test defines.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use runner_proto::evaluator::{
    EvaluateFunctionRequest, EvaluateFunctionResponse,
    function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Server, ServerTlsConfig},
};

use crate::{Answer, BackgroundServer};

const MESSAGE_LIMIT: usize = 64 << 20;

/// The behaviour of a test's function.
pub enum Function {
    /// The function answers at once; the argument is the text of the ResourceList.
    Answers(Box<dyn Fn(&str) -> Answer + Send + Sync>),
    /// The function never answers.
    Hangs,
}

/// A runner that evaluates one function for every image, and stops when dropped.
pub struct FakeRunner {
    server: BackgroundServer,
    requests: Requests,
}

type Requests = Arc<Mutex<Vec<EvaluateFunctionRequest>>>;

struct Service {
    function: Function,
    requests: Requests,
}

// === impl Function ===

impl Function {
    /// Returns a function that rewrites the text of the list.
    pub fn edits(edit: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::Answers(Box::new(move |list| {
            Ok(EvaluateFunctionResponse {
                resource_list: Bytes::from(edit(list)),
                log: Bytes::new(),
            })
        }))
    }

    /// Returns a function that changes nothing.
    #[must_use]
    pub fn identity() -> Self {
        Self::edits(str::to_owned)
    }

    /// Returns a function that fails with this status.
    pub fn fails(status: impl Fn() -> Status + Send + Sync + 'static) -> Self {
        Self::Answers(Box::new(move |_| Err(status())))
    }
}

// === impl FakeRunner ===

impl FakeRunner {
    /// Starts a runner without TLS.
    #[must_use]
    pub fn start(function: Function) -> Self {
        Self::serve(function, Server::builder())
    }

    /// Starts a runner with TLS.
    #[must_use]
    pub fn start_with_tls(function: Function, tls: ServerTlsConfig) -> Self {
        Self::serve(function, Server::builder().tls_config(tls).unwrap())
    }

    fn serve(function: Function, mut server: Server) -> Self {
        let requests = Requests::default();
        let service = Service {
            function,
            requests: Arc::clone(&requests),
        };
        let service = FunctionEvaluatorServer::new(service)
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        let server = server.add_service(service);
        let server = BackgroundServer::start(|listener| {
            server.serve_with_incoming(TcpListenerStream::new(listener))
        });
        Self { server, requests }
    }

    /// Returns the address at which the runner listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the only request received.
    #[must_use]
    pub fn request(&self) -> EvaluateFunctionRequest {
        let mut requests = self.requests.lock().unwrap();
        assert_eq!(requests.len(), 1, "one request expected");
        requests.remove(0)
    }

    /// Returns the ResourceList of the only request received.
    #[must_use]
    pub fn list(&self) -> String {
        String::from_utf8(self.request().resource_list.to_vec()).unwrap()
    }
}

// === impl Service ===

#[tonic::async_trait]
impl FunctionEvaluator for Service {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let request = request.into_inner();
        let list = String::from_utf8(request.resource_list.to_vec()).unwrap();
        self.requests.lock().unwrap().push(request);
        match &self.function {
            Function::Hangs => std::future::pending().await,
            Function::Answers(answer) => answer(&list).map(Response::new),
        }
    }
}
