use std::collections::HashMap;

use super::*;

#[cfg(feature = "otlp")]
mod collector;

fn read(set: &[(&str, &str)]) -> Result<Settings, TelemetryError> {
    let set: HashMap<&str, &str> = set.iter().copied().collect();
    Settings::read(&Variables::of(&|name| {
        set.get(name).map(ToString::to_string)
    }))
}

fn complaint(set: &[(&str, &str)]) -> String {
    match read(set) {
        Err(error) => error.to_string(),
        Ok(settings) => panic!("{set:?} was taken as {settings:?}"),
    }
}

#[test]
fn nothing_is_exported_unless_asked_for() {
    for set in [
        &[][..],
        &[
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ],
        &[("OTEL_METRICS_EXPORTER", ""), ("OTEL_TRACES_EXPORTER", " ")],
    ] {
        let settings = read(set).unwrap();
        assert_eq!(settings.metrics, MetricsExporter::None);
        assert_eq!(settings.traces, TracesExporter::None);
        assert_eq!(
            settings.propagators,
            [Propagator::TraceContext, Propagator::Baggage]
        );
        assert!(!settings.names_service);
    }
}

#[test]
fn a_disabled_sdk_exports_nothing_and_still_propagates() {
    let settings = read(&[
        ("OTEL_SDK_DISABLED", "TRUE"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
    ])
    .unwrap();
    assert_eq!(settings.metrics, MetricsExporter::None);
    assert_eq!(settings.traces, TracesExporter::None);
    assert_eq!(settings.propagators.len(), 2);
}

#[cfg(feature = "prometheus")]
#[test]
fn metrics_are_served_on_localhost_9464_unless_told_otherwise() {
    let asked = ("OTEL_METRICS_EXPORTER", "prometheus");
    assert_eq!(
        read(&[asked]).unwrap().metrics,
        MetricsExporter::Prometheus {
            host: "localhost".to_owned(),
            port: 9464
        }
    );
    let elsewhere = [
        asked,
        ("OTEL_EXPORTER_PROMETHEUS_HOST", "0.0.0.0"),
        ("OTEL_EXPORTER_PROMETHEUS_PORT", "9999"),
    ];
    assert_eq!(
        read(&elsewhere).unwrap().metrics,
        MetricsExporter::Prometheus {
            host: "0.0.0.0".to_owned(),
            port: 9999
        }
    );
}

#[test]
fn samplers_are_told_apart() {
    let sampler = |name: &str, ratio: &str| {
        let set = [
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", ratio),
        ];
        format!("{:?}", read(&set).unwrap().sampler)
    };
    assert_eq!(sampler("", ""), "ParentBased(AlwaysOn)");
    assert_eq!(
        sampler("parentbased_always_on", ""),
        "ParentBased(AlwaysOn)"
    );
    assert_eq!(
        sampler("parentbased_always_off", ""),
        "ParentBased(AlwaysOff)"
    );
    assert_eq!(
        sampler("parentbased_traceidratio", "0.25"),
        "ParentBased(TraceIdRatioBased(0.25))"
    );
    assert_eq!(sampler("always_on", ""), "AlwaysOn");
    assert_eq!(sampler("always_off", ""), "AlwaysOff");
    assert_eq!(sampler("traceidratio", ""), "TraceIdRatioBased(1.0)");
}

#[test]
fn propagators_are_a_list_that_none_empties() {
    let propagators = |list: &str| read(&[("OTEL_PROPAGATORS", list)]).unwrap().propagators;
    assert_eq!(propagators("baggage"), [Propagator::Baggage]);
    assert_eq!(
        propagators("tracecontext, baggage,tracecontext"),
        [Propagator::TraceContext, Propagator::Baggage]
    );
    assert_eq!(propagators("none"), []);
}

#[test]
fn the_environment_may_name_the_service_in_two_ways() {
    assert!(
        read(&[("OTEL_SERVICE_NAME", "runner-a")])
            .unwrap()
            .names_service
    );
    let attributes = (
        "OTEL_RESOURCE_ATTRIBUTES",
        "region=north,service.name=runner-b",
    );
    assert!(read(&[attributes]).unwrap().names_service);
    assert!(
        !read(&[("OTEL_RESOURCE_ATTRIBUTES", "region=north")])
            .unwrap()
            .names_service
    );
}

#[test]
fn a_value_nobody_knows_is_refused_with_the_ones_allowed() {
    for (variable, value, allowed) in [
        ("OTEL_SDK_DISABLED", "yes", "true, false"),
        ("OTEL_METRICS_EXPORTER", "statsd", "none"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "none"),
        (
            "OTEL_TRACES_SAMPLER",
            "jaeger_remote",
            "always_on, always_off, traceidratio",
        ),
        ("OTEL_PROPAGATORS", "b3", "tracecontext, baggage, none"),
    ] {
        let complaint = complaint(&[(variable, value)]);
        assert!(complaint.starts_with(&format!("{variable}: unknown value {value:?}")));
        assert!(complaint.contains(allowed), "{complaint}");
    }
}

#[test]
fn a_malformed_value_is_refused_by_name() {
    for set in [
        &[("OTEL_RESOURCE_ATTRIBUTES", "region")][..],
        &[
            ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ],
        &[
            ("OTEL_TRACES_SAMPLER_ARG", "half"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ],
        #[cfg(feature = "prometheus")]
        &[
            ("OTEL_EXPORTER_PROMETHEUS_PORT", "70000"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
        ],
    ] {
        let complaint = complaint(set);
        assert!(
            complaint.starts_with(&format!("{}: ", set[0].0)),
            "{complaint}"
        );
    }
}
