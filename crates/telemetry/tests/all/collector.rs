//! An OTLP collector over gRPC that records all exports.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

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
    metrics::v1::Metric,
    trace::v1::Span,
};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status, codec::CompressionEncoding, metadata::MetadataMap, transport::Server,
};

/// A running collector, stopped when dropped.
pub struct Collector {
    address: SocketAddr,
    received: Received,
    _runtime: Runtime,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Everything>>);

#[derive(Default)]
struct Everything {
    traces: Vec<(MetadataMap, ExportTraceServiceRequest)>,
    metrics: Vec<(MetadataMap, ExportMetricsServiceRequest)>,
}

// === impl Collector ===

impl Collector {
    pub fn start() -> Self {
        Self::start_with(Server::builder())
    }

    pub fn start_with(mut server: Server) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let received = Received::default();
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound address");
        let server = server
            .add_service(
                TraceServiceServer::new(received.clone())
                    .accept_compressed(CompressionEncoding::Gzip),
            )
            .add_service(
                MetricsServiceServer::new(received.clone())
                    .accept_compressed(CompressionEncoding::Gzip),
            )
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(server);
        Self {
            address,
            received,
            _runtime: runtime,
        }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every span with its service name.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let received = self.received.0.lock().expect("no holder panicked");
        let mut spans = Vec::new();
        for of_resource in received
            .traces
            .iter()
            .flat_map(|(_, request)| &request.resource_spans)
        {
            let service = attribute(
                &of_resource
                    .resource
                    .as_ref()
                    .expect("a resource")
                    .attributes,
                "service.name",
            );
            for span in of_resource
                .scope_spans
                .iter()
                .flat_map(|scope| &scope.spans)
            {
                spans.push((service.clone(), span.clone()));
            }
        }
        spans
    }

    /// Returns every metric of the last export.
    pub fn metrics(&self) -> Vec<Metric> {
        let received = self.received.0.lock().expect("no holder panicked");
        let (_, last) = received.metrics.last().expect("metrics were exported");
        last.resource_metrics
            .iter()
            .flat_map(|of_resource| &of_resource.scope_metrics)
            .flat_map(|scope| scope.metrics.clone())
            .collect()
    }

    /// Returns the headers of the first export of traces.
    pub fn trace_headers(&self) -> MetadataMap {
        self.received.0.lock().expect("no holder panicked").traces[0]
            .0
            .clone()
    }
}

/// Returns the value of a string attribute.
pub fn attribute(
    attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue],
    key: &str,
) -> String {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.clone()?.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("attribute {key:?} is {other:?} in {attributes:?}"),
    }
}

// === impl Received ===

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (headers, _, body) = request.into_parts();
        self.0
            .lock()
            .expect("no holder panicked")
            .traces
            .push((headers, body));
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
        self.0
            .lock()
            .expect("no holder panicked")
            .metrics
            .push((headers, body));
        Ok(Response::new(Default::default()))
    }
}
