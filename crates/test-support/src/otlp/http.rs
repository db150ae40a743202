//! An OTLP collector over HTTP, optionally with TLS, that records all exports.

use std::{
    convert::Infallible,
    io::Read,
    sync::{Arc, Mutex},
};

use flate2::read::GzDecoder;
use http::HeaderMap;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    rt, server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    metrics::v1::Metric,
    trace::v1::Span,
};
use prost::Message;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::BackgroundServer;

/// A running collector, stopped when dropped.
pub struct HttpCollector {
    server: BackgroundServer,
    received: Received,
}

/// A received export request.
#[derive(Clone)]
pub struct Export {
    /// Path of the request.
    pub path: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    body: Bytes,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Export>>>);

// === impl HttpCollector ===

impl HttpCollector {
    /// Starts a collector without TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a collector with TLS.
    #[must_use]
    pub fn start_with_tls(config: ServerConfig) -> Self {
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config))))
    }

    fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let received = Received::default();
        let record = received.clone();
        let server = BackgroundServer::start(|listener| accept(listener, tls, record));
        Self { server, received }
    }

    /// Returns the URL of the collector, with `http://` also if it has TLS.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns all exports received so far.
    #[must_use]
    pub fn exports(&self) -> Vec<Export> {
        self.received.0.lock().unwrap().clone()
    }

    /// Returns the paths of all exports received so far.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.exports()
            .into_iter()
            .map(|export| export.path)
            .collect()
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, received: Received) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, received) = (tls.clone(), received.clone());
        tokio::spawn(async move {
            match tls {
                None => serve(TokioIo::new(stream), received).await,
                // A failed handshake is ignored here; the tests check the client's error.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(TokioIo::new(stream), received).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl rt::Read + rt::Write + Unpin, received: Received) {
    let service = service_fn(|request| received.clone().take(request));
    let connection = server::conn::http1::Builder::new().serve_connection(stream, service);
    // The client may disconnect at any time.
    let _ = connection.await;
}

// === impl Export ===

impl Export {
    /// Returns the value of a header that must exist.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self
            .headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name}"));
        value.to_str().expect("ASCII")
    }

    /// Returns every span of the export.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        let request = ExportTraceServiceRequest::decode(self.message()).expect("spans");
        let of_scopes = request.resource_spans.into_iter();
        of_scopes
            .flat_map(|of_resource| of_resource.scope_spans)
            .flat_map(|of_scope| of_scope.spans)
            .collect()
    }

    /// Returns every metric of the export.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let request = ExportMetricsServiceRequest::decode(self.message()).expect("metrics");
        let of_scopes = request.resource_metrics.into_iter();
        of_scopes
            .flat_map(|of_resource| of_resource.scope_metrics)
            .flat_map(|of_scope| of_scope.metrics)
            .collect()
    }

    fn message(&self) -> Bytes {
        if !self.headers.contains_key("content-encoding") {
            return self.body.clone();
        }
        assert_eq!(self.header("content-encoding"), "gzip");
        let mut message = Vec::new();
        let mut decoder = GzDecoder::new(&*self.body);
        decoder.read_to_end(&mut message).expect("gzip");
        message.into()
    }
}

// === impl Received ===

impl Received {
    async fn take(self, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        if let Ok(body) = body.collect().await {
            self.0.lock().unwrap().push(Export {
                path: head.uri.to_string(),
                headers: head.headers,
                body: body.to_bytes(),
            });
        }
        Ok(Response::new(Empty::new()))
    }
}
