//! The gRPC connection to a collector.

use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};

use crate::{TelemetryError, settings::Collector};

/// Returns a channel that connects on first use and reconnects after a failure.
///
/// The connect timeout is set here because the exporter's time limit does not cover connecting:
/// an address that drops packets would block an export until the kernel gives up, after minutes.
pub(super) fn channel(collector: &Collector) -> Result<Channel, TelemetryError> {
    Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    let endpoint = Endpoint::from(collector.endpoint.clone())
        .timeout(collector.timeout)
        .connect_timeout(collector.timeout);
    #[cfg(feature = "tls")]
    let endpoint = match &collector.tls {
        Some(files) => super::tls::of_grpc(endpoint, files)?,
        None => endpoint,
    };
    Ok(endpoint.connect_lazy())
}
