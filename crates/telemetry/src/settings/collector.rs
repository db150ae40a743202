//! Where and how a collector is reached: the `OTEL_EXPORTER_OTLP_*` variables.
//!
//! Headers are checked here and read by the exporter itself.

use std::time::Duration;

use http::Uri;

use super::variables::{Variables, bad, unknown};
use crate::TelemetryError;

const DEFAULT_ENDPOINT: &str = "http://localhost:4317";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A collector of one signal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collector {
    pub(crate) endpoint: Uri,
    pub(crate) timeout: Duration,
}

/// A variable of one signal, and the one for all signals that it overrides.
type Names = [&'static str; 2];

struct SignalVariables {
    endpoint: Names,
    headers: Names,
    timeout: Names,
    protocol: Names,
    compression: Names,
}

macro_rules! signal_variables {
    ($signal:literal) => {
        SignalVariables {
            endpoint: [
                concat!("OTEL_EXPORTER_OTLP_", $signal, "_ENDPOINT"),
                "OTEL_EXPORTER_OTLP_ENDPOINT",
            ],
            headers: [
                concat!("OTEL_EXPORTER_OTLP_", $signal, "_HEADERS"),
                "OTEL_EXPORTER_OTLP_HEADERS",
            ],
            timeout: [
                concat!("OTEL_EXPORTER_OTLP_", $signal, "_TIMEOUT"),
                "OTEL_EXPORTER_OTLP_TIMEOUT",
            ],
            protocol: [
                concat!("OTEL_EXPORTER_OTLP_", $signal, "_PROTOCOL"),
                "OTEL_EXPORTER_OTLP_PROTOCOL",
            ],
            compression: [
                concat!("OTEL_EXPORTER_OTLP_", $signal, "_COMPRESSION"),
                "OTEL_EXPORTER_OTLP_COMPRESSION",
            ],
        }
    };
}

// === impl Collector ===

impl Collector {
    pub(super) fn of_metrics(variables: &Variables<'_>) -> Result<Self, TelemetryError> {
        Self::read(variables, &signal_variables!("METRICS"))
    }

    pub(super) fn of_traces(variables: &Variables<'_>) -> Result<Self, TelemetryError> {
        Self::read(variables, &signal_variables!("TRACES"))
    }

    fn read(variables: &Variables<'_>, names: &SignalVariables) -> Result<Self, TelemetryError> {
        if let Some((name, protocol)) = first(variables, names.protocol)
            && protocol != "grpc"
        {
            return Err(unknown(name, &protocol, &["grpc"]));
        }
        if let Some((name, compression)) = first(variables, names.compression) {
            match compression.as_str() {
                "none" => {}
                "gzip" if cfg!(feature = "gzip") => {}
                _ if cfg!(feature = "gzip") => {
                    return Err(unknown(name, &compression, &["gzip", "none"]));
                }
                _ => return Err(unknown(name, &compression, &["none"])),
            }
        }
        for name in names.headers {
            variables.pairs(name)?;
        }
        let timeout = match first(variables, names.timeout) {
            Some((name, _)) => variables.positive(name)?.map(Duration::from_millis),
            None => None,
        };
        let endpoint = match first(variables, names.endpoint) {
            Some((name, endpoint)) => endpoint_of(name, &endpoint)?,
            None => Uri::from_static(DEFAULT_ENDPOINT),
        };
        Ok(Self {
            endpoint,
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        })
    }
}

/// The most specific of these variables that is set.
fn first(variables: &Variables<'_>, names: Names) -> Option<(&'static str, String)> {
    names
        .into_iter()
        .find_map(|name| Some((name, variables.get(name)?)))
}

/// Takes `http://host:port`, and `host:port` as the same.
fn endpoint_of(variable: &'static str, text: &str) -> Result<Uri, TelemetryError> {
    let url = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let uri: Uri = url.parse().map_err(|reason| {
        bad(
            variable,
            format!("{text:?} is not a usable address: {reason}"),
        )
    })?;
    match uri.scheme_str() {
        Some("http") => Ok(uri),
        Some("https") => Err(bad(
            variable,
            format!(
                "{text:?} asks for TLS, which is not supported here; use http://, to a collector beside the process or inside a mesh"
            ),
        )),
        _ => Err(bad(
            variable,
            format!("{text:?} is not of the form http://host:port"),
        )),
    }
}
