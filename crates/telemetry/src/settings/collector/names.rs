//! Names of the variables that configure a signal's collector.

/// Names of a signal-specific variable and of the general variable that it overrides.
pub(super) type VariableNames = [&'static str; 2];

/// Names of all variables that configure the collector of one signal.
pub(super) struct SignalVariables {
    pub(super) protocol: VariableNames,
    pub(super) endpoint: VariableNames,
    /// Path of this signal over HTTP, relative to the endpoint for all signals.
    pub(super) path: &'static str,
    pub(super) insecure: VariableNames,
    pub(super) headers: VariableNames,
    pub(super) timeout: VariableNames,
    pub(super) compression: VariableNames,
    #[cfg(feature = "tls")]
    pub(super) certificate: VariableNames,
    #[cfg(feature = "tls")]
    pub(super) client_certificate: VariableNames,
    #[cfg(feature = "tls")]
    pub(super) client_key: VariableNames,
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
