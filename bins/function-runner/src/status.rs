//! Builds the report of the status service from the runtimes and the configuration.

mod exec;
mod pods;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use runner_config::{Configuration, Problem, Severity};
use runner_process::Engine;
use runner_proto::runner_status::{self, GetStatusResponse, problem};
use runner_service::StatusSource;

pub(crate) use pods::PodStatus;

/// The source of status reports.
pub(crate) struct Status {
    pub(crate) started: Instant,
    pub(crate) configuration: Configuration,
    /// Engine of the exec runtime; `None` if the runtime is disabled.
    pub(crate) exec: Option<Engine>,
    /// Status of the pod runtime; `None` if the runtime is disabled.
    pub(crate) pods: Option<PodStatus>,
}

// === impl Status ===

impl StatusSource for Status {
    fn report(&self) -> BoxFuture<'_, GetStatusResponse> {
        Box::pin(async {
            let mut degraded = BTreeSet::new();
            let pod = match &self.pods {
                Some(pods) => Some(pods.report(&mut degraded).await),
                None => None,
            };
            let table = self.configuration.table();
            GetStatusResponse {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime: duration(self.started.elapsed()),
                degraded: degraded.into_iter().collect(),
                problems: table.problems().iter().map(message).collect(),
                exec: self
                    .exec
                    .as_ref()
                    .map(|engine| exec::report(engine, &table)),
                pod,
                ..GetStatusResponse::default()
            }
        })
    }
}

fn message(problem: &Problem) -> runner_status::Problem {
    let severity = match problem.severity {
        Severity::Warning => problem::Severity::Warning,
        Severity::Error => problem::Severity::Error,
    };
    runner_status::Problem {
        severity: severity.into(),
        source: problem.source.to_string(),
        message: problem.message.clone(),
    }
}

/// Converts a duration; returns `None` if it exceeds the range of the message.
fn duration(duration: Duration) -> Option<runner_proto::WireDuration> {
    duration.try_into().ok()
}

/// Converts a count; larger values become `u32::MAX`.
fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
