//! Serves metrics to Prometheus at `GET /metrics`.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    task::{JoinHandle, JoinSet},
};

use crate::TelemetryError;

/// Time limit for a client to send its request headers, 10 s.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of open connections, 32; further ones wait in the listener's backlog.
const MAX_CONNECTIONS: usize = 32;

/// A running HTTP server, stopped when dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Returns a reader for the meter provider and the registry that collects its metrics.
pub(super) fn reader() -> Result<(PrometheusExporter, Registry), TelemetryError> {
    let registry = Registry::new();
    let reader = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .build()
        .map_err(|error| TelemetryError::BuildExporter {
            signal: "metrics",
            source: error.into(),
        })?;
    Ok((reader, registry))
}

// === impl Server ===

impl Server {
    pub(super) fn start(host: &str, port: u16, registry: Registry) -> Result<Self, TelemetryError> {
        let runtime = Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
        let (listener, address) = bind(host, port).map_err(|source| TelemetryError::Bind {
            address: format!("{host}:{port}"),
            source,
        })?;
        let task = runtime.spawn(accept(listener, registry));
        Ok(Self { address, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(host: &str, port: u16) -> io::Result<(TcpListener, SocketAddr)> {
    let address = resolve(host, port)?;
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}

/// Resolves the host to one address, preferring IPv4.
///
/// Only one address is tried: if the port is in use for one address family, serving on the other
/// would hide the problem. IPv4 is the family that scrapers use for `localhost`.
fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    if host == "localhost" {
        // Works without a resolver, which an image with a single static binary does not have.
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    let preferred = addresses.iter().find(|address| address.is_ipv4());
    preferred
        .or(addresses.first())
        .copied()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address"))
}

async fn accept(listener: TcpListener, registry: Registry) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, registry.clone()));
            }
            Err(error) => {
                // Probably out of file descriptors; some are freed when open connections close.
                tracing::debug!(%error, "cannot accept a scrape");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, registry: Registry) {
    let service = service_fn(move |request| {
        let response = respond(&request, &registry);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a scrape failed");
    }
}

fn respond<B>(request: &Request<B>, registry: &Registry) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match exposition(registry) {
            Ok(text) => {
                let mut response = Response::new(Full::from(text));
                let content_type = header::HeaderValue::from_static(TEXT_FORMAT);
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, content_type);
                response
            }
            Err(error) => text_response(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        (_, "/metrics") => text_response(StatusCode::METHOD_NOT_ALLOWED, "use GET\n"),
        _ => text_response(StatusCode::NOT_FOUND, "metrics are at /metrics\n"),
    }
}

fn text_response(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

/// Returns all metrics in the Prometheus text format.
pub(crate) fn exposition(registry: &Registry) -> prometheus::Result<String> {
    let mut families = registry.gather();
    for family in &mut families {
        // The exporter appends the unit even to a name that already ends with it.
        if family.name().contains("_bytes_bytes") {
            family.set_name(family.name().replace("_bytes_bytes", "_bytes"));
        }
    }
    TextEncoder::new().encode_to_string(&families)
}
