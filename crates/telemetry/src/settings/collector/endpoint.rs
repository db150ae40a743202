//! Reads the endpoint of a signal.

use http::Uri;

use super::{Protocol, SignalVariables, first_set};
use crate::{
    TelemetryError,
    settings::variables::{Variables, bad_value},
};

/// Returns the signal's own endpoint unchanged, or else the endpoint for all signals.
///
/// Over HTTP, the signal's path is appended to the endpoint for all signals.
pub(super) fn read(
    variables: &Variables<'_>,
    names: &SignalVariables,
    protocol: Protocol,
) -> Result<Uri, TelemetryError> {
    let [signal_variable, general_variable] = names.endpoint;
    let tls = uses_tls(variables, names);
    let (name, base) = match first_set(variables, names.endpoint) {
        Some((name, text)) => (name, parse(name, &text, tls)?),
        None => (
            general_variable,
            Uri::from_static(protocol.default_endpoint()),
        ),
    };
    if name == signal_variable || protocol == Protocol::Grpc {
        return Ok(base);
    }
    append_path(&base, names.path).map_err(|reason| unusable(name, &base.to_string(), &reason))
}

/// Returns whether an endpoint without a scheme uses TLS; `http://` and `https://` override this.
fn uses_tls(variables: &Variables<'_>, names: &SignalVariables) -> bool {
    first_set(variables, names.insecure).is_some_and(|(name, _)| !variables.flag(name))
}

/// Parses `http://host:port`, `https://host:port` or `host:port`, which uses TLS if `tls` is set.
fn parse(variable: &'static str, text: &str, tls: bool) -> Result<Uri, TelemetryError> {
    let url = match (text.contains("://"), tls) {
        (true, _) => text.to_owned(),
        (false, false) => format!("http://{text}"),
        (false, true) => format!("https://{text}"),
    };
    let uri: Uri = url
        .parse()
        .map_err(|reason| unusable(variable, text, &http::Error::from(reason)))?;
    match uri.scheme_str() {
        Some("http") => Ok(uri),
        Some("https") if cfg!(feature = "tls") => Ok(uri),
        Some("https") => Err(bad_value(
            variable,
            format!(
                "{text:?} requires TLS, which is not supported here; use http://, to a collector beside the process or inside a mesh"
            ),
        )),
        _ => Err(bad_value(
            variable,
            format!("{text:?} is not of the form http://host:port"),
        )),
    }
}

fn append_path(base: &Uri, path: &str) -> Result<Uri, http::Error> {
    let mut parts = base.clone().into_parts();
    let path = format!("{}{path}", base.path().trim_end_matches('/'));
    parts.path_and_query = Some(path.parse()?);
    Ok(Uri::from_parts(parts)?)
}

fn unusable(variable: &'static str, text: &str, reason: &http::Error) -> TelemetryError {
    bad_value(
        variable,
        format!("{text:?} is not a usable address: {reason}"),
    )
}

// === impl Protocol ===

impl Protocol {
    fn default_endpoint(self) -> &'static str {
        match self {
            Self::Grpc => "http://localhost:4317",
            Self::HttpProtobuf => "http://localhost:4318",
        }
    }
}
