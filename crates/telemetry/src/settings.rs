//! What the `OTEL_*` variables ask for, checked before anything starts.
//!
//! The SDK shrugs at values that it does not know and goes on with a default. Here a typing error
//! is an error, since missing telemetry is noticed on the day it is needed.

#[cfg(feature = "otlp")]
mod collector;
mod variables;

use opentelemetry_sdk::trace::Sampler;

use crate::TelemetryError;
use variables::Variables;

#[cfg(feature = "otlp")]
pub(crate) use collector::{Collector, Protocol};
#[cfg(feature = "tls")]
pub(crate) use collector::{Pem, TlsFiles};

/// Everything the environment asks for.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) metrics: MetricsExporter,
    pub(crate) traces: TracesExporter,
    pub(crate) sampler: Sampler,
    pub(crate) propagators: Vec<Propagator>,
    /// Whether the environment gives the service its name.
    pub(crate) names_service: bool,
}

/// Where metrics go.
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
}

/// Where traces go.
#[derive(Debug, PartialEq)]
pub(crate) enum TracesExporter {
    None,
    #[cfg(feature = "otlp")]
    Otlp(Box<Collector>),
}

/// A way to carry a trace from process to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagator {
    TraceContext,
    Baggage,
}

// === impl Settings ===

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, TelemetryError> {
        Self::read(&Variables::of_process())
    }

    fn read(variables: &Variables<'_>) -> Result<Self, TelemetryError> {
        let propagators = propagators(variables)?;
        let names_service = names_service(variables)?;
        let off = variables.flag("OTEL_SDK_DISABLED")?;
        let (metrics, traces, sampler) = if off {
            (
                MetricsExporter::None,
                TracesExporter::None,
                Sampler::AlwaysOff,
            )
        } else {
            (metrics(variables)?, traces(variables)?, sampler(variables)?)
        };
        Ok(Self {
            metrics,
            traces,
            sampler,
            propagators,
            names_service,
        })
    }
}

fn metrics(variables: &Variables<'_>) -> Result<MetricsExporter, TelemetryError> {
    const VARIABLE: &str = "OTEL_METRICS_EXPORTER";
    match variables.get(VARIABLE).as_deref() {
        None | Some("none") => Ok(MetricsExporter::None),
        #[cfg(feature = "prometheus")]
        Some("prometheus") => Ok(MetricsExporter::Prometheus {
            host: variables
                .get("OTEL_EXPORTER_PROMETHEUS_HOST")
                .unwrap_or_else(|| "localhost".to_owned()),
            port: variables
                .number("OTEL_EXPORTER_PROMETHEUS_PORT")?
                .unwrap_or(9464),
        }),
        #[cfg(feature = "otlp")]
        Some("otlp") => {
            variables.positive("OTEL_METRIC_EXPORT_INTERVAL")?;
            Collector::of_metrics(variables).map(|to| MetricsExporter::Otlp(Box::new(to)))
        }
        Some(other) => {
            let mut allowed = Vec::new();
            allowed.extend(cfg!(feature = "prometheus").then_some("prometheus"));
            allowed.extend(cfg!(feature = "otlp").then_some("otlp"));
            allowed.push("none");
            Err(variables::unknown(VARIABLE, other, &allowed))
        }
    }
}

fn traces(variables: &Variables<'_>) -> Result<TracesExporter, TelemetryError> {
    const VARIABLE: &str = "OTEL_TRACES_EXPORTER";
    match variables.get(VARIABLE).as_deref() {
        None | Some("none") => Ok(TracesExporter::None),
        #[cfg(feature = "otlp")]
        Some("otlp") => {
            for variable in [
                "OTEL_BSP_SCHEDULE_DELAY",
                "OTEL_BSP_MAX_QUEUE_SIZE",
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
                "OTEL_BSP_EXPORT_TIMEOUT",
            ] {
                variables.positive(variable)?;
            }
            Collector::of_traces(variables).map(|to| TracesExporter::Otlp(Box::new(to)))
        }
        Some(other) => {
            let mut allowed = Vec::new();
            allowed.extend(cfg!(feature = "otlp").then_some("otlp"));
            allowed.push("none");
            Err(variables::unknown(VARIABLE, other, &allowed))
        }
    }
}

fn sampler(variables: &Variables<'_>) -> Result<Sampler, TelemetryError> {
    const VARIABLE: &str = "OTEL_TRACES_SAMPLER";
    let parent_or = |root: Sampler| Sampler::ParentBased(Box::new(root));
    let ratio = || {
        variables
            .ratio("OTEL_TRACES_SAMPLER_ARG")
            .map(Sampler::TraceIdRatioBased)
    };
    match variables.get(VARIABLE).as_deref() {
        None | Some("parentbased_always_on") => Ok(parent_or(Sampler::AlwaysOn)),
        Some("parentbased_always_off") => Ok(parent_or(Sampler::AlwaysOff)),
        Some("parentbased_traceidratio") => ratio().map(parent_or),
        Some("always_on") => Ok(Sampler::AlwaysOn),
        Some("always_off") => Ok(Sampler::AlwaysOff),
        Some("traceidratio") => ratio(),
        Some(other) => Err(variables::unknown(
            VARIABLE,
            other,
            &[
                "always_on",
                "always_off",
                "traceidratio",
                "parentbased_always_on",
                "parentbased_always_off",
                "parentbased_traceidratio",
            ],
        )),
    }
}

fn propagators(variables: &Variables<'_>) -> Result<Vec<Propagator>, TelemetryError> {
    const VARIABLE: &str = "OTEL_PROPAGATORS";
    let Some(list) = variables.get(VARIABLE) else {
        return Ok(vec![Propagator::TraceContext, Propagator::Baggage]);
    };
    let mut propagators = Vec::new();
    for name in list.split(',').map(str::trim) {
        let propagator = match name {
            // Anywhere in the list, as the specification has it.
            "none" => return Ok(Vec::new()),
            "tracecontext" => Propagator::TraceContext,
            "baggage" => Propagator::Baggage,
            other => {
                let allowed = ["tracecontext", "baggage", "none"];
                return Err(variables::unknown(VARIABLE, other, &allowed));
            }
        };
        if !propagators.contains(&propagator) {
            propagators.push(propagator);
        }
    }
    Ok(propagators)
}

fn names_service(variables: &Variables<'_>) -> Result<bool, TelemetryError> {
    let attributes = variables.pairs("OTEL_RESOURCE_ATTRIBUTES")?;
    Ok(variables.get("OTEL_SERVICE_NAME").is_some()
        || attributes.iter().any(|(key, _)| key == "service.name"))
}

#[cfg(test)]
mod tests;
