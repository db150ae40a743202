//! A report of the cluster's state for a failed test: pods, events, logs.

use std::fmt::Write;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::{ResourceExt, api::ListParams, api::LogParams};

use crate::Stage;

const LOG_LINES: i64 = 50;

/// Prints the report to standard error.
pub async fn print(stage: &Stage) {
    let mut text = format!("\n=== namespace {} ===\n", stage.namespace());
    // Writing to a string cannot fail, and an incomplete report is still useful.
    let _ = pods(stage, &mut text).await;
    let _ = events(stage, &mut text).await;
    eprintln!("{text}=== end of namespace {} ===", stage.namespace());
}

async fn pods(stage: &Stage, text: &mut String) -> anyhow::Result<()> {
    let api = stage.api::<Pod>();
    for pod in api.list(&ListParams::default()).await? {
        let status = pod.status.clone().unwrap_or_default();
        let phase = status.phase.as_deref().unwrap_or("unknown");
        writeln!(
            text,
            "pod {}: {phase} {}",
            pod.name_any(),
            status.reason.unwrap_or_default()
        )?;
        for condition in status.conditions.iter().flatten() {
            let message = condition.message.as_deref().unwrap_or_default();
            writeln!(text, "  {}={} {message}", condition.type_, condition.status)?;
        }
        let init = status.init_container_statuses.iter().flatten();
        for container in init.chain(status.container_statuses.iter().flatten()) {
            container_state(container, text)?;
            let of = LogParams {
                container: Some(container.name.clone()),
                tail_lines: Some(LOG_LINES),
                ..LogParams::default()
            };
            for line in api
                .logs(&pod.name_any(), &of)
                .await
                .unwrap_or_default()
                .lines()
            {
                writeln!(text, "    | {line}")?;
            }
        }
    }
    Ok(())
}

fn container_state(container: &ContainerStatus, text: &mut String) -> anyhow::Result<()> {
    let state = serde_json::to_string(&container.state)?;
    let restarts = container.restart_count;
    writeln!(
        text,
        "  container {}: {state}, restarted {restarts} times",
        container.name
    )?;
    Ok(())
}

async fn events(stage: &Stage, text: &mut String) -> anyhow::Result<()> {
    for event in stage.api::<Event>().list(&ListParams::default()).await? {
        let about = event.involved_object;
        writeln!(
            text,
            "event {} {}: {} {}",
            about.kind.unwrap_or_default(),
            about.name.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        )?;
    }
    Ok(())
}
