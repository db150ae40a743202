//! Checks dashboard and alerts against docs/metrics.md and Prometheus' parser.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::{Command, Stdio},
};

use super::*;

/// The metric that Prometheus adds to every scrape; not one of the runner's.
const SCRAPE_METRIC: &str = "up";

/// Returns the second column of the table in docs/metrics.md.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| `function_runner."));
    rows.map(|row| {
        let column = row.split('|').nth(2).unwrap();
        column.trim().trim_matches('`').to_owned()
    })
    .collect()
}

fn panel_expressions() -> Vec<String> {
    let panels = panels::ROWS.iter().flat_map(|row| row.panels);
    let lines = panels.flat_map(|panel| panel.lines);
    lines
        .map(|(expression, _)| (*expression).to_owned())
        .collect()
}

fn alerts() -> Vec<Value> {
    let text =
        fs::read_to_string(root().join("deploy/observability/prometheus-rule.yaml")).unwrap();
    let rule: Value = serde_saphyr::from_str(&text).unwrap();
    rule["spec"]["groups"][0]["rules"]
        .as_array()
        .unwrap()
        .clone()
}

fn alert_expressions() -> Vec<String> {
    let of = |alert: &Value| alert["expr"].as_str().unwrap().to_owned();
    alerts().iter().map(of).collect()
}

/// Returns the metrics in an expression, without the suffixes of histograms.
fn metrics(expression: &str) -> BTreeSet<String> {
    let words = expression
        .split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let ours = words.filter(|word| word.starts_with("function_runner_"));
    ours.map(|word| {
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| word.strip_suffix(suffix));
        base.unwrap_or(word).to_owned()
    })
    .collect()
}

#[test]
fn the_dashboard_shows_exactly_the_documented_metrics() {
    let shown: BTreeSet<_> = panel_expressions()
        .iter()
        .flat_map(|line| metrics(line))
        .collect();
    assert_eq!(shown, documented());
}

#[test]
fn alerts_use_only_documented_metrics() {
    let known = documented();
    for expression in alert_expressions() {
        let named = metrics(&expression);
        assert!(named.is_subset(&known), "{named:?}");
        assert!(
            !named.is_empty() || expression.contains(SCRAPE_METRIC),
            "{expression}"
        );
    }
}

#[test]
fn every_alert_has_a_summary_a_description_and_a_severity() {
    for alert in alerts() {
        for part in ["summary", "description"] {
            assert!(alert["annotations"][part].is_string(), "{alert}");
        }
        let severity = alert["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{alert}");
    }
}

#[test]
fn prometheus_parses_every_expression() {
    let expressions: Vec<_> = panel_expressions()
        .iter()
        .map(|line| line.replace("$__rate_interval", "5m"))
        .chain(alert_expressions())
        .collect();
    let build = root().join("tests/tools/build");
    let found = Command::new(build)
        .args(["--path", "promql"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success(), "{text}");
    let program = String::from_utf8(found.stdout).unwrap();
    let mut parser = Command::new(program.trim())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::to_vec(&expressions).unwrap();
    parser.stdin.take().unwrap().write_all(&input).unwrap();
    let output = parser.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.trim(), format!("{} expressions", expressions.len()));
}
