//! Reads the telemetry settings from the `OTEL_*` variables.
//!
//! As in the OpenTelemetry specification, an unsupported value causes a warning and counts as
//! unset.

#[cfg(feature = "otlp")]
mod collector;
mod variables;

#[cfg(feature = "console")]
use std::time::Duration;

use opentelemetry_sdk::{Resource, trace::Sampler};

use crate::TelemetryError;
use variables::Variables;

#[cfg(feature = "otlp")]
pub(crate) use collector::{Collector, Protocol};
#[cfg(feature = "tls")]
pub(crate) use collector::{Pem, TlsFiles};

/// All telemetry settings of the process.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) metrics: MetricsExporter,
    pub(crate) traces: TracesExporter,
    pub(crate) sampler: Sampler,
    pub(crate) propagators: Vec<Propagator>,
    /// Whether the environment sets the name of the service.
    pub(crate) sets_service_name: bool,
    /// Problems of single variables, logged as soon as logging is set up.
    pub(crate) warnings: Vec<TelemetryError>,
}

/// The destination of metrics.
#[derive(Debug, PartialEq)]
pub(crate) enum MetricsExporter {
    None,
    #[cfg(feature = "prometheus")]
    Prometheus {
        host: String,
        port: u16,
    },
    #[cfg(feature = "otlp")]
    Otlp(Box<Collector>),
    /// Standard output, in the Prometheus text format, once per interval.
    #[cfg(feature = "console")]
    Console {
        interval: Duration,
    },
}

/// The destination of traces.
#[derive(Debug, PartialEq)]
pub(crate) enum TracesExporter {
    None,
    /// Standard output, one line per span.
    #[cfg(feature = "console")]
    Console,
    #[cfg(feature = "otlp")]
    Otlp(Box<Collector>),
}

/// A header format that carries a trace from one process to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagator {
    TraceContext,
    Baggage,
    /// B3 in a single header.
    #[cfg(feature = "propagators")]
    B3,
    /// B3 with one header per value.
    #[cfg(feature = "propagators")]
    B3Multi,
    #[cfg(feature = "propagators")]
    Jaeger,
}

/// Propagators used if the environment names no supported one.
const DEFAULT_PROPAGATORS: [Propagator; 2] = [Propagator::TraceContext, Propagator::Baggage];

// === impl Settings ===

impl Settings {
    pub(crate) fn from_environment() -> Self {
        Self::read(Variables::from_environment())
    }

    /// Returns the OpenTelemetry resource that identifies this process in exported telemetry.
    ///
    /// The attributes come from `OTEL_RESOURCE_ATTRIBUTES`. The service name is
    /// `OTEL_SERVICE_NAME`, else the `service.name` of these attributes, else `service_name`.
    pub(crate) fn resource(&self, service_name: &str) -> Resource {
        let mut resource = Resource::builder();
        if !self.sets_service_name {
            resource = resource.with_service_name(service_name.to_owned());
        }
        resource.build()
    }

    fn read(variables: Variables<'_>) -> Self {
        let propagators = propagators(&variables);
        let sets_service_name = sets_service_name(&variables);
        let disabled = variables.flag("OTEL_SDK_DISABLED");
        let (metrics, traces, sampler) = if disabled {
            (
                MetricsExporter::None,
                TracesExporter::None,
                Sampler::AlwaysOff,
            )
        } else {
            (metrics(&variables), traces(&variables), sampler(&variables))
        };
        Self {
            metrics,
            traces,
            sampler,
            propagators,
            sets_service_name,
            warnings: variables.into_warnings(),
        }
    }
}

fn metrics(variables: &Variables<'_>) -> MetricsExporter {
    const VARIABLE: &str = "OTEL_METRICS_EXPORTER";
    const SUPPORTED: &[&str] = &[
        #[cfg(feature = "prometheus")]
        "prometheus",
        #[cfg(feature = "otlp")]
        "otlp",
        #[cfg(feature = "console")]
        "console",
        "none",
    ];
    let Some(name) = exporter(variables, VARIABLE, SUPPORTED) else {
        return MetricsExporter::None;
    };
    match name.as_str() {
        #[cfg(feature = "prometheus")]
        "prometheus" => MetricsExporter::Prometheus {
            host: variables
                .get("OTEL_EXPORTER_PROMETHEUS_HOST")
                .unwrap_or_else(|| "localhost".to_owned()),
            port: variables
                .number("OTEL_EXPORTER_PROMETHEUS_PORT")
                .unwrap_or(9464),
        },
        #[cfg(feature = "otlp")]
        "otlp" => {
            variables.positive("OTEL_METRIC_EXPORT_INTERVAL");
            match Collector::for_metrics(variables) {
                Ok(collector) => MetricsExporter::Otlp(Box::new(collector)),
                Err(error) => {
                    variables.warn(error.into_not_exported("metrics"));
                    MetricsExporter::None
                }
            }
        }
        #[cfg(feature = "console")]
        "console" => {
            let interval = variables.positive("OTEL_METRIC_EXPORT_INTERVAL");
            MetricsExporter::Console {
                interval: Duration::from_millis(interval.unwrap_or(60_000)),
            }
        }
        _ => MetricsExporter::None,
    }
}

fn traces(variables: &Variables<'_>) -> TracesExporter {
    const VARIABLE: &str = "OTEL_TRACES_EXPORTER";
    const SUPPORTED: &[&str] = &[
        #[cfg(feature = "otlp")]
        "otlp",
        #[cfg(feature = "console")]
        "console",
        "none",
    ];
    let Some(name) = exporter(variables, VARIABLE, SUPPORTED) else {
        return TracesExporter::None;
    };
    for variable in [
        "OTEL_BSP_SCHEDULE_DELAY",
        "OTEL_BSP_MAX_QUEUE_SIZE",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        "OTEL_BSP_EXPORT_TIMEOUT",
    ] {
        variables.positive(variable);
    }
    match name.as_str() {
        #[cfg(feature = "otlp")]
        "otlp" => match Collector::for_traces(variables) {
            Ok(collector) => TracesExporter::Otlp(Box::new(collector)),
            Err(error) => {
                variables.warn(error.into_not_exported("traces"));
                TracesExporter::None
            }
        },
        #[cfg(feature = "console")]
        "console" => TracesExporter::Console,
        _ => TracesExporter::None,
    }
}

/// Returns the first supported exporter of a comma-separated list and warns about all others.
fn exporter(
    variables: &Variables<'_>,
    variable: &'static str,
    supported: &[&str],
) -> Option<String> {
    let list = variables.get(variable)?;
    let mut selected: Option<&str> = None;
    for name in list.split(',').map(str::trim) {
        match selected {
            _ if !supported.contains(&name) => {
                variables.warn(variables::unsupported(variable, name, supported));
            }
            None => selected = Some(name),
            Some(first) if first == name => {}
            Some(first) => {
                let problem = format!(
                    "only the first supported exporter, {first:?}, is used; {name:?} is ignored"
                );
                variables.warn(variables::bad_value(variable, problem));
            }
        }
    }
    selected.map(str::to_owned)
}

fn sampler(variables: &Variables<'_>) -> Sampler {
    const VARIABLE: &str = "OTEL_TRACES_SAMPLER";
    let parent_based = |root: Sampler| Sampler::ParentBased(Box::new(root));
    let ratio = || Sampler::TraceIdRatioBased(variables.ratio("OTEL_TRACES_SAMPLER_ARG"));
    match variables.get(VARIABLE).as_deref() {
        None | Some("parentbased_always_on") => parent_based(Sampler::AlwaysOn),
        Some("parentbased_always_off") => parent_based(Sampler::AlwaysOff),
        Some("parentbased_traceidratio") => parent_based(ratio()),
        Some("always_on") => Sampler::AlwaysOn,
        Some("always_off") => Sampler::AlwaysOff,
        Some("traceidratio") => ratio(),
        Some(other) => {
            let supported = [
                "always_on",
                "always_off",
                "traceidratio",
                "parentbased_always_on",
                "parentbased_always_off",
                "parentbased_traceidratio",
            ];
            variables.warn(variables::unsupported(VARIABLE, other, &supported));
            parent_based(Sampler::AlwaysOn)
        }
    }
}

fn propagators(variables: &Variables<'_>) -> Vec<Propagator> {
    const VARIABLE: &str = "OTEL_PROPAGATORS";
    let Some(list) = variables.get(VARIABLE) else {
        return DEFAULT_PROPAGATORS.to_vec();
    };
    let mut propagators = Vec::new();
    for name in list.split(',').map(str::trim) {
        let propagator = match name {
            // At any position in the list, as in the specification.
            "none" => return Vec::new(),
            "tracecontext" => Propagator::TraceContext,
            "baggage" => Propagator::Baggage,
            #[cfg(feature = "propagators")]
            "b3" => Propagator::B3,
            #[cfg(feature = "propagators")]
            "b3multi" => Propagator::B3Multi,
            #[cfg(feature = "propagators")]
            "jaeger" => Propagator::Jaeger,
            other => {
                let supported = [
                    "tracecontext",
                    "baggage",
                    #[cfg(feature = "propagators")]
                    "b3",
                    #[cfg(feature = "propagators")]
                    "b3multi",
                    #[cfg(feature = "propagators")]
                    "jaeger",
                    "none",
                ];
                variables.warn(variables::unsupported(VARIABLE, other, &supported));
                continue;
            }
        };
        if !propagators.contains(&propagator) {
            propagators.push(propagator);
        }
    }
    if propagators.is_empty() {
        return DEFAULT_PROPAGATORS.to_vec();
    }
    propagators
}

fn sets_service_name(variables: &Variables<'_>) -> bool {
    let attributes = variables.pairs("OTEL_RESOURCE_ATTRIBUTES");
    variables.get("OTEL_SERVICE_NAME").is_some()
        || attributes.iter().any(|(key, _)| key == "service.name")
}

#[cfg(test)]
mod tests;
