//! The connection of exports over gRPC.

use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};

use crate::{TelemetryError, settings::Collector};

/// A connection that is made when first used, and again after it broke.
///
/// Left alone, the exporter would wait for an address that swallows packets as long as the kernel
/// does, minutes; the time limit for exporting does not cover connecting.
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
