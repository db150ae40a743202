//! Reads the endpoint of a signal.

use http::Uri;

use super::{Protocol, SignalVariables, first};
use crate::{
    TelemetryError,
    settings::variables::{Variables, bad},
};

/// Returns the signal's own endpoint unchanged, or else the endpoint for all signals.
///
/// Over HTTP, the signal's path is appended to the endpoint for all signals.
pub(super) fn read(
    variables: &Variables<'_>,
    names: &SignalVariables,
    protocol: Protocol,
) -> Result<Uri, TelemetryError> {
    let [of_signal, of_all] = names.endpoint;
    let plain = !asks_for_tls(variables, names);
    let (name, base) = match first(variables, names.endpoint) {
        Some((name, text)) => (name, parse(name, &text, plain)?),
        None => (of_all, Uri::from_static(protocol.default_endpoint())),
    };
    if name == of_signal || protocol == Protocol::Grpc {
        return Ok(base);
    }
    below(&base, names.path).map_err(|reason| unusable(name, &base.to_string(), &reason))
}

/// Returns whether an endpoint without a scheme uses TLS; `http://` and `https://` override this.
fn asks_for_tls(variables: &Variables<'_>, names: &SignalVariables) -> bool {
    first(variables, names.insecure).is_some_and(|(name, _)| !variables.flag(name))
}

/// Parses `http://host:port`, `https://host:port` or `host:port`.
fn parse(variable: &'static str, text: &str, plain: bool) -> Result<Uri, TelemetryError> {
    let url = match (text.contains("://"), plain) {
        (true, _) => text.to_owned(),
        (false, true) => format!("http://{text}"),
        (false, false) => format!("https://{text}"),
    };
    let uri: Uri = url
        .parse()
        .map_err(|reason| unusable(variable, text, &http::Error::from(reason)))?;
    match uri.scheme_str() {
        Some("http") => Ok(uri),
        Some("https") if cfg!(feature = "tls") => Ok(uri),
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

fn below(base: &Uri, path: &str) -> Result<Uri, http::Error> {
    let mut parts = base.clone().into_parts();
    let path = format!("{}{path}", base.path().trim_end_matches('/'));
    parts.path_and_query = Some(path.parse()?);
    Ok(Uri::from_parts(parts)?)
}

fn unusable(variable: &'static str, text: &str, reason: &http::Error) -> TelemetryError {
    bad(
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
