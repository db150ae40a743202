//! OTLP collectors, over gRPC and over HTTP.

mod grpc;
mod http;

pub use grpc::{Collector, attribute};
pub use http::{Export, HttpCollector};

/// Returns an ID of a trace or span as hexadecimal digits.
#[must_use]
pub fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
