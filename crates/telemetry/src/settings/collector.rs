//! Reads the settings of a collector from the `OTEL_EXPORTER_OTLP_*` variables.
//!
//! Headers and compression are only checked here; the exporter reads these variables itself.

mod endpoint;
mod names;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use http::Uri;

use super::variables::{Variables, bad_value, unsupported};
use crate::TelemetryError;
use names::{SignalVariables, VariableNames};

#[cfg(feature = "tls")]
pub(crate) use tls::{Pem, TlsFiles};

/// Timeout of an export if no variable sets one, 10 s.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The collector settings of one signal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collector {
    pub(crate) protocol: Protocol,
    /// Endpoint URI; includes the signal's path for HTTP, but not for gRPC.
    pub(crate) endpoint: Uri,
    pub(crate) timeout: Duration,
    /// TLS files; present exactly if the endpoint is at `https://`.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsFiles>,
}

/// An OTLP transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    HttpProtobuf,
}

// === impl Collector ===

impl Collector {
    pub(super) fn for_metrics(variables: &Variables<'_>) -> Result<Self, TelemetryError> {
        Self::read(variables, &names::METRICS)
    }

    pub(super) fn for_traces(variables: &Variables<'_>) -> Result<Self, TelemetryError> {
        Self::read(variables, &names::TRACES)
    }

    fn read(variables: &Variables<'_>, names: &SignalVariables) -> Result<Self, TelemetryError> {
        let protocol = Protocol::read(variables, names);
        check_compression(variables, names)?;
        for name in names.headers {
            variables.pairs(name);
        }
        let timeout = first_set(variables, names.timeout)
            .and_then(|(name, _)| variables.positive(name))
            .map(Duration::from_millis);
        let endpoint = endpoint::read(variables, names, protocol)?;
        Ok(Self {
            protocol,
            #[cfg(feature = "tls")]
            tls: match endpoint.scheme_str() {
                Some("https") => Some(TlsFiles::read(variables, names)?),
                _ => None,
            },
            endpoint,
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        })
    }
}

// === impl Protocol ===

impl Protocol {
    fn read(variables: &Variables<'_>, names: &SignalVariables) -> Self {
        let Some((name, protocol)) = first_set(variables, names.protocol) else {
            return Self::HttpProtobuf;
        };
        match protocol.as_str() {
            "grpc" => Self::Grpc,
            "http/protobuf" => Self::HttpProtobuf,
            other => {
                // Collectors that accept http/json accept http/protobuf at the same address.
                variables.warn(unsupported(name, other, &["http/protobuf", "grpc"]));
                Self::HttpProtobuf
            }
        }
    }
}

fn check_compression(
    variables: &Variables<'_>,
    names: &SignalVariables,
) -> Result<(), TelemetryError> {
    let allowed: &[&str] = if cfg!(feature = "gzip") {
        &["gzip", "none"]
    } else {
        &["none"]
    };
    match first_set(variables, names.compression) {
        Some((name, compression)) if !allowed.contains(&compression.as_str()) => {
            let supported = allowed.join(", ");
            Err(bad_value(
                name,
                format!("{compression:?} is not supported; supported: {supported}"),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the name and value of the first of these variables that is set.
fn first_set(variables: &Variables<'_>, names: VariableNames) -> Option<(&'static str, String)> {
    names
        .into_iter()
        .find_map(|name| Some((name, variables.get(name)?)))
}
