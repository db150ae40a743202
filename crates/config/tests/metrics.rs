//! Tests of the exported metrics, in their own process because the exporter is global.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData},
};
use runner_config::{Binaries, Configuration, FileOptions, Wanted};

/// Returns the latest value of every series, keyed by `name{label=value,…}`.
fn scrape(provider: &SdkMeterProvider, exporter: &InMemoryMetricExporter) -> BTreeMap<String, u64> {
    exporter.reset();
    provider.force_flush().unwrap();
    let mut series = BTreeMap::new();
    for resource in exporter.get_finished_metrics().unwrap() {
        for metric in resource.scope_metrics().flat_map(|scope| scope.metrics()) {
            let AggregatedMetrics::U64(data) = metric.data() else {
                continue;
            };
            let points: Vec<_> = match data {
                MetricData::Sum(sum) => sum
                    .data_points()
                    .map(|point| (point.attributes().cloned().collect(), point.value()))
                    .collect(),
                MetricData::Gauge(gauge) => gauge
                    .data_points()
                    .map(|point| (point.attributes().cloned().collect(), point.value()))
                    .collect(),
                _ => continue,
            };
            for (labels, value) in points {
                let labels: Vec<opentelemetry::KeyValue> = labels;
                let mut labels: Vec<String> = labels
                    .iter()
                    .map(|label| format!("{}={}", label.key, label.value))
                    .collect();
                labels.sort();
                series.insert(format!("{}{{{}}}", metric.name(), labels.join(",")), value);
            }
        }
    }
    series
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_reloads_and_problems() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(exporter.clone()).build())
        .build();
    opentelemetry::global::set_meter_provider(provider.clone());

    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    fs::write(&config, "functions: []\n").unwrap();
    let configuration = Configuration::load(FileOptions {
        functions_dir: directory.path().to_owned(),
        config: config.clone(),
        config_wanted: Wanted::Required,
        pod_cache_config: PathBuf::from("/nonexistent/pod-cache-config.yaml"),
        pod_cache_wanted: Wanted::Optional,
        default_prefix: "ghcr.io/x".to_owned(),
        binaries: Binaries::Check,
    })
    .unwrap();
    let _reload = configuration.spawn_reload().unwrap();
    let mut tables = configuration.watch();

    let edits = [
        (
            "functions: [{function: gone, images: ['fn:v1']}]",
            "applied",
        ),
        ("functions: [", "rejected"),
    ];
    for (text, outcome) in edits {
        // The file is replaced atomically, so that it is never read half written.
        fs::write(directory.path().join("draft"), text).unwrap();
        fs::rename(directory.path().join("draft"), &config).unwrap();
        tokio::time::timeout(Duration::from_secs(20), tables.changed())
            .await
            .unwrap()
            .unwrap();
        // The counter is updated shortly after the table.
        let counted = format!("function_runner.config.reloads{{outcome={outcome},source=config}}");
        let wait = async {
            while !scrape(&provider, &exporter).contains_key(&counted) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait)
            .await
            .unwrap();
    }

    let series = scrape(&provider, &exporter);
    let errors = "function_runner.config.problems{severity=error,source=config}";
    let none = "function_runner.config.problems{severity=error,source=functionconfig}";
    assert_eq!((series[errors], series[none]), (2, 0), "{series:#?}");
}
