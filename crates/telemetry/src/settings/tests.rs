use std::collections::HashMap;

use super::*;

#[cfg(feature = "otlp")]
mod collector;

fn read(set: &[(&str, &str)]) -> Settings {
    let set: HashMap<&str, &str> = set.iter().copied().collect();
    Settings::read(Variables::new(&|name| {
        set.get(name).map(ToString::to_string)
    }))
}

/// Returns the only warning about these variables.
fn warning(set: &[(&str, &str)]) -> String {
    let warnings = read(set).warnings;
    assert_eq!(warnings.len(), 1, "{set:?}: {warnings:?}");
    warnings[0].to_string()
}

#[test]
fn exports_nothing_by_default() {
    for set in [
        &[][..],
        &[
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ],
        &[("OTEL_METRICS_EXPORTER", ""), ("OTEL_TRACES_EXPORTER", " ")],
    ] {
        let settings = read(set);
        assert_eq!(settings.metrics, MetricsExporter::None);
        assert_eq!(settings.traces, TracesExporter::None);
        assert_eq!(
            settings.propagators,
            [Propagator::TraceContext, Propagator::Baggage]
        );
        assert!(!settings.sets_service_name);
    }
}

#[test]
fn exports_nothing_but_propagates_if_the_sdk_is_disabled() {
    let settings = read(&[
        ("OTEL_SDK_DISABLED", "TRUE"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
    ]);
    assert_eq!(settings.metrics, MetricsExporter::None);
    assert_eq!(settings.traces, TracesExporter::None);
    assert_eq!(settings.propagators.len(), 2);
}

#[cfg(feature = "prometheus")]
#[test]
fn serves_metrics_on_localhost_9464_by_default() {
    let asked = ("OTEL_METRICS_EXPORTER", "prometheus");
    assert_eq!(
        read(&[asked]).metrics,
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
        read(&elsewhere).metrics,
        MetricsExporter::Prometheus {
            host: "0.0.0.0".to_owned(),
            port: 9999
        }
    );
}

#[test]
fn parses_every_sampler() {
    let sampler = |name: &str, ratio: &str| {
        let set = [
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", ratio),
        ];
        format!("{:?}", read(&set).sampler)
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
fn parses_a_list_of_propagators() {
    let propagators = |list: &str| read(&[("OTEL_PROPAGATORS", list)]).propagators;
    assert_eq!(propagators("baggage"), [Propagator::Baggage]);
    assert_eq!(
        propagators("tracecontext, baggage,tracecontext"),
        [Propagator::TraceContext, Propagator::Baggage]
    );
    assert_eq!(propagators("none"), []);
}

#[test]
fn finds_the_service_name_in_either_variable() {
    assert!(read(&[("OTEL_SERVICE_NAME", "runner-a")]).sets_service_name);
    let attributes = (
        "OTEL_RESOURCE_ATTRIBUTES",
        "region=north,service.name=runner-b",
    );
    assert!(read(&[attributes]).sets_service_name);
    assert!(!read(&[("OTEL_RESOURCE_ATTRIBUTES", "region=north")]).sets_service_name);
}

#[test]
fn accepts_b3_and_jaeger_and_warns_about_other_propagators() {
    let settings = read(&[("OTEL_PROPAGATORS", "b3,b3multi,jaeger,xray,ottrace")]);
    #[cfg(feature = "propagators")]
    assert_eq!(
        settings.propagators,
        [Propagator::B3, Propagator::B3Multi, Propagator::Jaeger]
    );
    #[cfg(not(feature = "propagators"))]
    assert_eq!(settings.propagators, DEFAULT_PROPAGATORS);
    let last = settings.warnings.last().map(ToString::to_string);
    let expected = "OTEL_PROPAGATORS: \"ottrace\" is not supported and is ignored; \
                    supported: tracecontext, baggage, ";
    assert!(
        last.as_ref().is_some_and(|last| last.starts_with(expected)),
        "{last:?}"
    );
}

#[test]
fn keeps_the_default_for_an_unknown_propagator() {
    let settings = read(&[("OTEL_PROPAGATORS", "pigeon")]);
    assert_eq!(settings.propagators, DEFAULT_PROPAGATORS);
    assert_eq!(settings.warnings.len(), 1);
}

#[test]
fn warns_about_an_unsupported_value_and_lists_supported_ones() {
    for (variable, value, supported) in [
        ("OTEL_SDK_DISABLED", "yes", "true, false"),
        ("OTEL_METRICS_EXPORTER", "logging", "none"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "none"),
        (
            "OTEL_TRACES_SAMPLER",
            "jaeger_remote",
            "always_on, always_off, traceidratio",
        ),
    ] {
        let warning = warning(&[(variable, value)]);
        let expected = format!("{variable}: {value:?} is not supported and is ignored");
        assert!(warning.starts_with(&expected), "{warning}");
        assert!(warning.contains(supported), "{warning}");
    }
}

#[cfg(all(feature = "console", feature = "otlp"))]
#[test]
fn uses_the_first_supported_exporter_of_a_list() {
    let settings = read(&[
        ("OTEL_TRACES_EXPORTER", "zipkin,console,otlp"),
        ("OTEL_METRICS_EXPORTER", "console"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "250"),
    ]);
    assert_eq!(settings.traces, TracesExporter::Console);
    let interval = Duration::from_millis(250);
    assert_eq!(settings.metrics, MetricsExporter::Console { interval });
    assert_eq!(settings.warnings.len(), 2, "{:?}", settings.warnings);
}

#[cfg(all(feature = "otlp", feature = "prometheus"))]
#[test]
fn warns_that_only_the_first_of_two_exporters_is_used() {
    assert_eq!(
        warning(&[("OTEL_METRICS_EXPORTER", "prometheus, otlp")]),
        "OTEL_METRICS_EXPORTER: only the first supported exporter, \"prometheus\", is used; \
         \"otlp\" is ignored"
    );
    let settings = read(&[("OTEL_METRICS_EXPORTER", "prometheus,prometheus")]);
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

#[test]
fn warns_about_a_malformed_value_and_treats_it_as_unset() {
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
        let warning = warning(set);
        assert!(warning.starts_with(&format!("{}: ", set[0].0)), "{warning}");
    }
}
