//! Formats a runner's status as tables.

use std::{fmt::Write, time::Duration};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use runner_proto::{
    WireDuration,
    runner_status::{
        ExecRuntime, GetStatusResponse, Phase, Pod, PodFunction, PodRuntime, pod, problem,
    },
};

use crate::report::{count, printable};

/// Number of hex digits shown of a digest, enough to distinguish images.
const DIGEST_DIGITS: usize = 12;

/// Minimum width, in columns, at which names are not wrapped.
const ROOMY: u16 = 90;

/// Formats the whole status.
pub(super) fn tables(report: &GetStatusResponse, address: &str, width: u16) -> String {
    let mut text = format!(
        "function-runner {} at {address}: {}, up {}\n",
        report.version,
        phase(report.phase()),
        short(report.uptime)
    );
    if let Some(exec) = &report.exec {
        exec_runtime(&mut text, exec, width);
    }
    if let Some(pods) = &report.pod {
        pod_runtime(&mut text, pods, width);
    }
    if !report.degraded.is_empty() {
        text.push_str("\nDegraded:\n");
    }
    for sentence in &report.degraded {
        let _ = writeln!(text, "  {}", printable(sentence));
    }
    if !report.problems.is_empty() {
        let number = count(report.problems.len(), "problem");
        let _ = writeln!(text, "\n{number} of the configuration:");
    }
    for problem in &report.problems {
        let severity = match problem.severity() {
            problem::Severity::Warning => "warning",
            _ => "error",
        };
        let line = format!("{severity}: {}: {}", problem.source, problem.message);
        let _ = writeln!(text, "  {}", printable(&line));
    }
    text
}

fn exec_runtime(text: &mut String, exec: &ExecRuntime, width: u16) {
    let _ = writeln!(
        text,
        "\nProcesses: {} running (at most {}), {} of {} queued",
        exec.running, exec.parallel, exec.queued, exec.max_queued
    );
    let rows = exec.functions.iter().map(|function| {
        [
            function.image.clone(),
            function.versions.join("\n"),
            match function.standby_off.as_str() {
                "" => function.standby.to_string(),
                why => format!("off: {why}"),
            },
            function.path.clone(),
        ]
    });
    table(
        text,
        width,
        ["FUNCTION", "VERSIONS", "STANDBY", "EXECUTABLE"],
        rows,
    );
}

fn pod_runtime(text: &mut String, runtime: &PodRuntime, width: u16) {
    let namespace = &runtime.namespace;
    if !runtime.in_step {
        let _ = writeln!(text, "\nPods in {namespace}: not known yet");
        return;
    }
    let pods: usize = runtime.functions.iter().map(|it| it.pods.len()).sum();
    let waiting: u32 = runtime.functions.iter().map(|it| it.queued).sum();
    let _ = writeln!(
        text,
        "\nPods in {namespace}: {}, {} waiting, template {}\n\
         Since the start: {} created, {} adopted, {} deleted, {} failed to start",
        count(pods, "pod"),
        count(usize::try_from(waiting).unwrap_or(usize::MAX), "evaluation"),
        or_dash(&runtime.template_version),
        runtime.pods_created,
        runtime.pods_adopted,
        runtime.pods_deleted,
        runtime.starts_failed,
    );
    if !runtime.wrapper_injection.is_empty() {
        let (way, why) = (
            &runtime.wrapper_injection,
            &runtime.wrapper_injection_reason,
        );
        let _ = writeln!(text, "Wrapper injection: {way} ({why})");
    }
    let rows = runtime
        .functions
        .iter()
        .map(|it| function(it, runtime.max_queued));
    let header = ["FUNCTION", "DIGEST", "PODS", "QUEUED", "WAITLIST", "TTL"];
    table(text, width, header, rows);
    let all = || runtime.functions.iter().flat_map(|it| &it.pods);
    let header = [
        "POD",
        "STATE",
        "AGE",
        "IN FLIGHT",
        "SERVED",
        "TTL LEFT",
        "ADDRESS",
    ];
    table(text, width, header, all().map(pod));
    starts(text, width, all());
}

fn function(function: &PodFunction, max_queued: u32) -> [String; 6] {
    let digest = function.digest.rsplit(':').next().unwrap_or_default();
    let mut digest = digest.get(..DIGEST_DIGITS).unwrap_or(digest).to_owned();
    if function.superseded {
        digest.push_str("\nsuperseded");
    }
    [
        function.image.clone(),
        digest,
        format!("{} of {}", function.pods.len(), function.max_pods),
        format!("{} of {max_queued}", function.queued),
        function.max_waitlist.to_string(),
        short(function.time_to_live),
    ]
}

fn pod(pod: &Pod) -> [String; 7] {
    let mut state = state(pod.state()).to_owned();
    if !pod.current_template {
        state.push_str("\nold template");
    }
    let address = match pod.way() {
        pod::Way::Unspecified => "-".to_owned(),
        pod::Way::Pod => pod.address.clone(),
        pod::Way::Service => format!("{} svc", pod.address),
    };
    [
        pod.name.clone(),
        state,
        short(pod.age),
        pod.in_flight.to_string(),
        pod.served.to_string(),
        short(pod.ttl_left),
        address,
    ]
}

/// Appends a table of how the pods of this runner started, with a column for each step.
fn starts<'a>(text: &mut String, width: u16, pods: impl Iterator<Item = &'a Pod> + Clone) {
    let mut header = vec!["START OF"];
    for step in pods.clone().flat_map(|pod| &pod.start) {
        if !header.contains(&step.step.as_str()) {
            header.push(&step.step);
        }
    }
    let rows = pods.filter(|pod| !pod.start.is_empty()).map(|pod| {
        let took = |name: &&str| {
            let step = pod.start.iter().find(|step| step.step == **name);
            step.map_or_else(|| "-".to_owned(), |step| precise(step.took))
        };
        let steps = header[1..].iter().map(took);
        std::iter::once(pod.name.clone())
            .chain(steps)
            .collect::<Vec<_>>()
    });
    let titles = header.iter().map(|title| title.to_uppercase());
    table(text, width, titles, rows);
}

/// Appends a table, or nothing if there are no rows.
fn table<H, R>(text: &mut String, width: u16, header: H, rows: impl Iterator<Item = R>)
where
    H: IntoIterator<Item: Into<String>>,
    R: IntoIterator<Item = String>,
{
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(header.into_iter().map(Into::<String>::into));
    for row in rows {
        table.add_row(row.into_iter().map(|cell| printable(&cell).into_owned()));
    }
    // Names are meant to be copied: if the table is wide enough, the other columns wrap instead.
    if width >= ROOMY
        && let Some(names) = table.column_mut(0)
    {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    let _ = writeln!(text, "{table}");
}

pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Serving => "serving",
        Phase::Draining => "draining",
        Phase::Unspecified => "unknown",
    }
}

pub(super) fn state(state: pod::State) -> &'static str {
    match state {
        pod::State::Creating => "creating",
        pod::State::Starting => "starting",
        pod::State::Ready => "ready",
        pod::State::Suspect => "suspect",
        pod::State::Abandoned => "abandoned",
        pod::State::Failed => "failed",
        pod::State::Deleting => "deleting",
        pod::State::Unspecified => "unknown",
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Formats a duration in its two largest units: `2h 3m`, `59s`.
fn short(duration: Option<WireDuration>) -> String {
    let Some(duration) = duration.and_then(|it| Duration::try_from(it).ok()) else {
        return "-".to_owned();
    };
    let seconds = duration.as_secs();
    let pair = |big: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit} {small}{part}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => pair(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => pair(seconds / 3600, "h", seconds / 60 % 60, "m"),
        _ => pair(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

fn precise(duration: Option<WireDuration>) -> String {
    match duration.and_then(|it| Duration::try_from(it).ok()) {
        None => "-".to_owned(),
        Some(duration) if duration < Duration::from_secs(1) => {
            format!("{}ms", duration.as_millis())
        }
        Some(duration) => format!("{:.2}s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
pub(super) mod tests;
