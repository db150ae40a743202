//! An OTLP collector over gRPC that records all exports.

use std::sync::{Arc, Mutex, MutexGuard};

use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::Metric,
    trace::v1::Span,
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status, codec::CompressionEncoding, metadata::MetadataMap, transport::Server,
};

use crate::BackgroundServer;

/// A running collector, stopped when dropped.
pub struct Collector {
    server: BackgroundServer,
    received: Received,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Exports>>);

#[derive(Default)]
struct Exports {
    traces: Vec<(MetadataMap, ExportTraceServiceRequest)>,
    metrics: Vec<(MetadataMap, ExportMetricsServiceRequest)>,
}

// === impl Collector ===

impl Collector {
    /// Starts a collector without TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(Server::builder())
    }

    /// Starts a collector on a configured server.
    #[must_use]
    pub fn start_with(mut server: Server) -> Self {
        let received = Received::default();
        let traces = TraceServiceServer::new(received.clone());
        let metrics = MetricsServiceServer::new(received.clone());
        let server = server
            .add_service(traces.accept_compressed(CompressionEncoding::Gzip))
            .add_service(metrics.accept_compressed(CompressionEncoding::Gzip));
        let server = BackgroundServer::start(|listener| {
            server.serve_with_incoming(TcpListenerStream::new(listener))
        });
        Self { server, received }
    }

    /// Returns the URL of the collector.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns every span with its service name.
    #[must_use]
    pub fn spans(&self) -> Vec<(String, Span)> {
        let received = self.received.lock();
        let requests = received.traces.iter();
        let mut spans = Vec::new();
        for of_resource in requests.flat_map(|(_, request)| &request.resource_spans) {
            let resource = of_resource.resource.as_ref().expect("a resource");
            let service = attribute(&resource.attributes, "service.name");
            let scopes = of_resource.scope_spans.iter();
            let of_scopes = scopes.flat_map(|scope| &scope.spans);
            spans.extend(of_scopes.map(|span| (service.clone(), span.clone())));
        }
        spans
    }

    /// Returns every metric of the last export.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let received = self.received.lock();
        let (_, last) = received.metrics.last().expect("metrics were exported");
        last.resource_metrics
            .iter()
            .flat_map(|of_resource| &of_resource.scope_metrics)
            .flat_map(|scope| scope.metrics.clone())
            .collect()
    }

    /// Returns the headers of the first export of traces.
    #[must_use]
    pub fn trace_headers(&self) -> MetadataMap {
        self.received.lock().traces[0].0.clone()
    }
}

/// Returns the value of a string attribute.
#[must_use]
pub fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.clone()?.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("attribute {key:?} is {other:?} in {attributes:?}"),
    }
}

// === impl Received ===

impl Received {
    fn lock(&self) -> MutexGuard<'_, Exports> {
        self.0.lock().unwrap()
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (headers, _, body) = request.into_parts();
        self.lock().traces.push((headers, body));
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Received {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let (headers, _, body) = request.into_parts();
        self.lock().metrics.push((headers, body));
        Ok(Response::new(Default::default()))
    }
}
