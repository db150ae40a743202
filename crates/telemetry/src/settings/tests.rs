use std::{collections::HashMap, time::Duration};

use super::*;

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

#[cfg(feature = "otlp")]
#[test]
fn a_signals_own_variable_wins_over_the_common_one() {
    let settings = read(&[
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://collector.example.com:4317",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "traces.example.com:4317",
        ),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
    ])
    .unwrap();
    let collector = |endpoint: &'static str| Collector {
        endpoint: http::Uri::from_static(endpoint),
        timeout: Duration::from_millis(500),
    };
    assert_eq!(
        settings.metrics,
        MetricsExporter::Otlp(collector("http://collector.example.com:4317"))
    );
    assert_eq!(
        settings.traces,
        TracesExporter::Otlp(collector("http://traces.example.com:4317"))
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

#[cfg(feature = "otlp")]
#[test]
fn what_the_exporter_cannot_do_is_refused_by_name() {
    for (variable, value, hint) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/protobuf",
            "allowed: grpc",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "http/json",
            "allowed: grpc",
        ),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "snappy", "none"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "https://collector.example.com",
            "TLS",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "ftp://collector.example.com",
            "http://host:port",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://no host",
            "not a usable address",
        ),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "not a usable number"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "greater than 0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "not a usable number"),
    ] {
        let complaint = complaint(&[("OTEL_TRACES_EXPORTER", "otlp"), (variable, value)]);
        assert!(
            complaint.starts_with(&format!("{variable}: ")),
            "{complaint}"
        );
        assert!(complaint.contains(hint), "{complaint}");
    }
    let interval = ("OTEL_METRIC_EXPORT_INTERVAL", "often");
    assert!(
        complaint(&[("OTEL_METRICS_EXPORTER", "otlp"), interval]).starts_with(interval.0),
        "the interval is checked"
    );
}

#[cfg(feature = "otlp")]
#[test]
fn a_malformed_header_is_refused_without_being_shown() {
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "tenant=a,s3cret");
    let complaint = complaint(&[("OTEL_TRACES_EXPORTER", "otlp"), headers]);
    assert_eq!(
        complaint,
        "OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not of the form key=value"
    );
}
