//! The HTTP client for a collector.

use std::sync::Arc;

use async_trait::async_trait;
use hyper_util::client::legacy::connect::HttpConnector;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, hyper::HyperClient};
use runner_core::with_causes;
use tokio::runtime::Handle;

use crate::{TelemetryError, settings::Collector};

/// Returns a client for one collector, which keeps its connection between exports.
pub(super) fn client(collector: &Collector) -> Result<RuntimeClient, TelemetryError> {
    let runtime = Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    Ok(RuntimeClient {
        runtime,
        client: http_client(collector)?,
    })
}

#[cfg(feature = "tls")]
fn http_client(collector: &Collector) -> Result<Arc<dyn HttpClient>, TelemetryError> {
    let Some(files) = &collector.tls else {
        return Ok(plaintext_client(collector));
    };
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(super::tls::http_config(files)?)
        .https_only()
        .enable_http1()
        .build();
    Ok(Arc::new(HyperClient::new(
        connector,
        collector.timeout,
        None,
    )))
}

#[cfg(not(feature = "tls"))]
fn http_client(collector: &Collector) -> Result<Arc<dyn HttpClient>, TelemetryError> {
    Ok(plaintext_client(collector))
}

fn plaintext_client(collector: &Collector) -> Arc<dyn HttpClient> {
    let connector = HttpConnector::new();
    Arc::new(HyperClient::new(connector, collector.timeout, None))
}

/// An HTTP client that sends on the process's Tokio runtime, for callers without a runtime.
#[derive(Debug)]
pub(super) struct RuntimeClient {
    runtime: Handle,
    client: Arc<dyn HttpClient>,
}

// === impl RuntimeClient ===

#[async_trait]
impl HttpClient for RuntimeClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let response = self
            .runtime
            .spawn(async move { client.send_bytes(request).await })
            .await?;
        if let Err(error) = &response {
            // The exporter itself only logs that the network failed. Only the last source
            // distinguishes a refused connection from an untrusted certificate. With the target of the
            // exporter's crate, the log suppresses repeated warnings.
            tracing::warn!(
                target: "opentelemetry_http",
                error = with_causes(&**error),
                "the collector was not reached"
            );
        }
        response
    }
}
