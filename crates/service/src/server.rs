//! The gRPC server: binds the port, assembles the services and serves them.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use runner_core::{
    Evaluator,
    defaults::{CONNECTION_WINDOW, STREAM_WINDOW},
};
use runner_proto::{
    DESCRIPTORS, DETAIL_DESCRIPTORS,
    evaluator::function_evaluator_server::{self, FunctionEvaluatorServer},
    health::health_server,
    runner_status::runner_status_server,
    wire::SingleWrite,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tonic::{
    codec::CompressionEncoding,
    transport::server::{Connected, TcpIncoming},
};

#[cfg(feature = "tls")]
use crate::Tls;
use crate::{
    Health, Lifecycle, ListenAt, StatusSource, StuckCheck, TraceParent, dispatch::DispatchLayer,
    evaluations::Evaluations, lifecycle::Phase, status::Reports,
};

/// Interval of HTTP/2 pings (30 s).
///
/// Clients keep one connection open indefinitely; pings detect that the other side is gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time for the last responses to be sent after the grace period (2 s).
const FINAL_RESPONSE_TIME: Duration = Duration::from_secs(2);

/// Options of a [`Server`].
#[derive(Default)]
pub struct ServerOptions {
    /// Size limit of a message in bytes, in both directions.
    pub message_limit: usize,
    /// Function that joins evaluations to the traces of their callers.
    pub trace_parent: Option<TraceParent>,
    /// Source of the status service; none: the service is not offered.
    pub status: Option<Arc<dyn StatusSource>>,
    /// Check of whether the process is stuck, for the health service `liveness`.
    ///
    /// A tokio runtime that no longer runs any task needs no check: it does not answer.
    pub stuck: Option<StuckCheck>,
    /// Whether calls that arrive while the server drains are served.
    ///
    /// A caller may send a call before it sees the GOAWAY that is on its way to every connection,
    /// and refusing would fail such a call. False suits callers that retry elsewhere by themselves.
    pub serves_late_calls: bool,
    /// TLS configuration; none: plaintext.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

type Router = tonic::transport::server::Router<
    tower::layer::util::Stack<DispatchLayer, tower::layer::util::Identity>,
>;

/// A server that has bound its port.
pub struct Server {
    listener: TcpListener,
    router: Router,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    lifecycle: Lifecycle,
}

/// A reason why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is in use or does not belong to this machine.
    #[error("cannot listen on {at}: {source}")]
    Listen {
        /// The requested address and port.
        at: ListenAt,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The descriptor set is invalid.
    #[error("cannot offer reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The server has stopped after a transport error and accepts no more connections.
    #[error("cannot serve: {0}")]
    Serve(#[source] tonic::transport::Error),
}

// === impl ServerOptions ===

impl ServerOptions {
    /// Returns options of a plaintext server that joins evaluations to the traces of their callers.
    #[must_use]
    pub fn plaintext(message_limit: usize, trace_parent: TraceParent) -> Self {
        Self {
            message_limit,
            trace_parent: Some(trace_parent),
            serves_late_calls: false,
            status: None,
            stuck: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

// === impl Server ===

impl Server {
    /// Binds the port and prepares the services for an evaluator.
    pub async fn bind(
        at: ListenAt,
        evaluator: Arc<dyn Evaluator>,
        lifecycle: Lifecycle,
        options: ServerOptions,
    ) -> Result<Self, ServerError> {
        let listener = at.bind().await;
        let listener = listener.map_err(|source| ServerError::Listen { at, source })?;
        let limit = options.message_limit;
        let evaluations = Evaluations {
            evaluator,
            lifecycle: lifecycle.clone(),
            trace_parent: options.trace_parent,
            message_limit: limit,
            closed_from: if options.serves_late_calls {
                Phase::Stopping
            } else {
                Phase::Draining
            },
        };
        let evaluations = FunctionEvaluatorServer::new(evaluations)
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
            // Responses are never compressed: that takes longer than sending them within a cluster.
            .accept_compressed(CompressionEncoding::Gzip);
        let status = options.status.clone();
        let status = status.map(|source| Reports::server(source, lifecycle.clone()));
        let stuck = options.stuck.clone();
        let has_status = status.is_some();
        let reflection = || reflection(has_status);
        let router = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .layer(DispatchLayer {
                service: evaluations,
                limit,
            })
            .add_service(Health::server(lifecycle.clone(), stuck))
            .add_optional_service(status)
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?);
        Ok(Self {
            listener,
            router,
            #[cfg(feature = "tls")]
            tls: options.tls,
            lifecycle,
        })
    }

    /// Returns the address the server listens on, with the actual port if port 0 was requested.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the lifecycle drains, then accepts no connections, finishes running calls and
    /// returns.
    pub async fn serve(self) -> Result<(), ServerError> {
        let incoming = TcpIncoming::from(self.listener).with_nodelay(Some(true));
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls {
            return serve_on(tls.accept(incoming), self.router, self.lifecycle).await;
        }
        let incoming = incoming.map(|connection| connection.map(SingleWrite::new));
        serve_on(incoming, self.router, self.lifecycle).await
    }
}

async fn serve_on<C>(
    incoming: impl Stream<Item = io::Result<C>>,
    router: Router,
    lifecycle: Lifecycle,
) -> Result<(), ServerError>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let drain = {
        let lifecycle = lifecycle.clone();
        async move { lifecycle.reached(Phase::Draining).await }
    };
    let served = router.serve_with_incoming_shutdown(incoming, drain);
    // Connections that clients never close are cut off after the grace period.
    let cut_off = async {
        lifecycle.reached(Phase::Stopping).await;
        tokio::time::sleep(FINAL_RESPONSE_TIME).await;
    };
    finished_before(served, cut_off)
        .await
        .map_or(Ok(()), |served| served.map_err(ServerError::Serve))
}

/// Describes the services that this server offers, which may be fewer than in the descriptor set.
fn reflection(has_status: bool) -> tonic_reflection::server::Builder<'static> {
    let mut names = vec![
        function_evaluator_server::SERVICE_NAME,
        health_server::SERVICE_NAME,
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    names.extend(has_status.then_some(runner_status_server::SERVICE_NAME));
    let described = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(DETAIL_DESCRIPTORS);
    names
        .into_iter()
        .fold(described, |builder, name| builder.with_service_name(name))
}

/// Returns the result of the work, or none if the limit ends first.
async fn finished_before<T>(
    work: impl Future<Output = T>,
    limit: impl Future<Output = ()>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = limit => None,
    }
}
