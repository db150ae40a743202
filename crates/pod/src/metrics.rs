//! Metrics of pods.

use std::{collections::HashMap, time::Duration};

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Gauge, Histogram, UpDownCounter},
};
use runner_cluster::InjectionStatus;
use runner_pool::{Leave, PodState, Snapshot};

use crate::coordinator::{AnnouncementOutcome, StartStep};

pub(crate) struct Metrics {
    created: Counter<u64>,
    deleted: Counter<u64>,
    start_failures: Counter<u64>,
    lost: Counter<u64>,
    announcements: Counter<u64>,
    phases: Histogram<f64>,
    pods: UpDownCounter<i64>,
    waiting: UpDownCounter<i64>,
    injection: Gauge<u64>,
    shown: HashMap<&'static str, i64>,
    shown_waiting: i64,
    shown_injection: Option<[KeyValue; 2]>,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new() -> Self {
        let meter = global::meter("function-runner");
        let counter = |name, description| {
            meter
                .u64_counter(name)
                .with_description(description)
                .build()
        };
        Self {
            created: counter("function_runner.pods.created", "Pods asked for"),
            deleted: counter(
                "function_runner.pods.deleted",
                "Pods whose removal was asked for",
            ),
            start_failures: counter(
                "function_runner.pods.start_failures",
                "Pods the API server did not take",
            ),
            lost: counter(
                "function_runner.pods.lost_calls",
                "Calls whose pod did not answer",
            ),
            announcements: counter(
                "function_runner.pods.announcements",
                "Pods that called to say that they listen",
            ),
            phases: meter
                .f64_histogram("function_runner.pod.start.duration")
                .with_unit("s")
                .with_description("From asking for a pod to a step of its start")
                .build(),
            pods: meter
                .i64_up_down_counter("function_runner.pods")
                .with_description("Pods known")
                .build(),
            waiting: meter
                .i64_up_down_counter("function_runner.pods.waiting")
                .with_description("Requests that wait for a pod")
                .build(),
            injection: meter
                .u64_gauge("function_runner.wrapper_injection")
                .with_description("1 for the way in which the wrapper gets into new pods")
                .build(),
            shown_injection: None,
            shown: HashMap::new(),
            shown_waiting: 0,
        }
    }

    pub(crate) fn created(&self) {
        self.created.add(1, &[]);
    }

    pub(crate) fn deleted(&self, why: Leave) {
        let why = match why {
            Leave::Failed => "failed",
            Leave::TooSlow => "too_slow",
            Leave::Lost => "lost",
            Leave::OldTemplate => "old_template",
            Leave::OldDigest => "old_digest",
            Leave::Surplus => "surplus",
            Leave::Idle => "idle",
        };
        self.deleted.add(1, &[KeyValue::new("why", why)]);
    }

    pub(crate) fn start_failed(&self) {
        self.start_failures.add(1, &[]);
    }

    pub(crate) fn lost(&self) {
        self.lost.add(1, &[]);
    }

    pub(crate) fn announcement(&self, outcome: AnnouncementOutcome) {
        let outcome = match outcome {
            AnnouncementOutcome::Accepted => "accepted",
            AnnouncementOutcome::Late => "late",
            AnnouncementOutcome::Refused => "refused",
        };
        self.announcements
            .add(1, &[KeyValue::new("outcome", outcome)]);
    }

    pub(crate) fn step_reached(&self, step: StartStep, took: Duration) {
        let phase = KeyValue::new("phase", step.as_str());
        self.phases.record(took.as_secs_f64(), &[phase]);
    }

    /// Records the way in which the wrapper gets into new pods, and the reason.
    pub(crate) fn show_injection(&mut self, status: Option<InjectionStatus>) {
        let now = status.map(|status| {
            [
                KeyValue::new("injection", status.injection.to_string()),
                KeyValue::new("reason", status.reason.to_string()),
            ]
        });
        if self.shown_injection == now {
            return;
        }
        if let Some(before) = &self.shown_injection {
            self.injection.record(0, before);
        }
        if let Some(now) = &now {
            self.injection.record(1, now);
        }
        self.shown_injection = now;
    }

    /// Sets the numbers of pods and waiting requests to those of a snapshot.
    pub(crate) fn show(&mut self, snapshot: &Snapshot) {
        let mut now: HashMap<&'static str, i64> = self.shown.keys().map(|key| (*key, 0)).collect();
        let mut waiting = 0;
        for function in &snapshot.functions {
            waiting += i64::try_from(function.queued).unwrap_or(i64::MAX);
            for pod in &function.pods {
                *now.entry(state(pod.state)).or_default() += 1;
            }
        }
        for (state, count) in &now {
            let before = self.shown.get(state).copied().unwrap_or_default();
            self.pods
                .add(count - before, &[KeyValue::new("state", *state)]);
        }
        self.waiting.add(waiting - self.shown_waiting, &[]);
        self.shown = now;
        self.shown_waiting = waiting;
    }
}

fn state(state: PodState) -> &'static str {
    match state {
        PodState::Creating => "creating",
        PodState::Starting => "starting",
        PodState::Ready => "ready",
        PodState::Suspect => "suspect",
        PodState::Abandoned => "abandoned",
        PodState::Failed => "failed",
        PodState::Deleting => "deleting",
    }
}
