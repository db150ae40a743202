//! What the variables about a signal's collector are called.

/// A variable of one signal, and the one for all signals that it overrides.
pub(super) type Names = [&'static str; 2];

/// The variables about one signal's collector.
pub(super) struct SignalVariables {
    pub(super) protocol: Names,
    pub(super) endpoint: Names,
    /// Where a collector takes this signal over HTTP, below the endpoint for all signals.
    pub(super) path: &'static str,
    pub(super) insecure: Names,
    pub(super) headers: Names,
    pub(super) timeout: Names,
    pub(super) compression: Names,
    #[cfg(feature = "tls")]
    pub(super) certificate: Names,
    #[cfg(feature = "tls")]
    pub(super) client_certificate: Names,
    #[cfg(feature = "tls")]
    pub(super) client_key: Names,
}

macro_rules! signal_variables {
    ($signal:literal, $path:literal) => {
        SignalVariables {
            protocol: signal_variables!(@ $signal, "PROTOCOL"),
            endpoint: signal_variables!(@ $signal, "ENDPOINT"),
            path: $path,
            insecure: signal_variables!(@ $signal, "INSECURE"),
            headers: signal_variables!(@ $signal, "HEADERS"),
            timeout: signal_variables!(@ $signal, "TIMEOUT"),
            compression: signal_variables!(@ $signal, "COMPRESSION"),
            #[cfg(feature = "tls")]
            certificate: signal_variables!(@ $signal, "CERTIFICATE"),
            #[cfg(feature = "tls")]
            client_certificate: signal_variables!(@ $signal, "CLIENT_CERTIFICATE"),
            #[cfg(feature = "tls")]
            client_key: signal_variables!(@ $signal, "CLIENT_KEY"),
        }
    };
    (@ $signal:literal, $what:literal) => {
        [
            concat!("OTEL_EXPORTER_OTLP_", $signal, "_", $what),
            concat!("OTEL_EXPORTER_OTLP_", $what),
        ]
    };
}

pub(super) const METRICS: SignalVariables = signal_variables!("METRICS", "/v1/metrics");
pub(super) const TRACES: SignalVariables = signal_variables!("TRACES", "/v1/traces");
