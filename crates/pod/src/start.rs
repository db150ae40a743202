//! Times each step in the start of a pod, for metrics, traces and the status service.

use std::time::{Duration, Instant};

use runner_pool::PodName;
use tracing::{Span, debug_span};

use crate::Tracing;

/// A step of a pod's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Metadata,
    Created,
    Scheduled,
    Listening,
    Address,
    Ready,
    Answered,
}

/// Durations of the steps of a pod's start; none: the step was not seen.
///
/// All but `metadata` are counted from the moment the pod was requested. The steps have no fixed
/// order: a pod that announces itself listens before Kubernetes shows its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartPhases {
    /// Duration of the image's lookup in its registry, before the pod was requested.
    pub metadata: Option<Duration>,
    /// Time until the API server accepted the pod.
    pub created: Option<Duration>,
    /// Time until the pod was assigned to a node.
    pub scheduled: Option<Duration>,
    /// Time until the wrapper announced itself.
    pub listening: Option<Duration>,
    /// Time until Kubernetes showed the address of the pod.
    pub address: Option<Duration>,
    /// Time until the wrapper answered, or Kubernetes reported the pod as ready.
    pub ready: Option<Duration>,
    /// Time until the pod answered its first request.
    pub answered: Option<Duration>,
}

/// The start of a pod.
pub(crate) struct Start {
    slot: PodName,
    asked: Instant,
    phases: StartPhases,
    /// Whether a request waits for the pod; its answer is then the last step.
    awaited: bool,
    /// Span of the start, open until the pod is ready.
    span: Option<Span>,
    steps: Steps,
}

/// Open spans of steps. Those of steps that are never seen end with the start.
struct Steps {
    create: Option<Span>,
    schedule: Option<Span>,
    listen: Option<Span>,
    address: Option<Span>,
    answer: Option<Span>,
}

// === impl Phase ===

impl Phase {
    /// Returns the name of the step in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Created => "created",
            Self::Scheduled => "scheduled",
            Self::Listening => "listening",
            Self::Address => "address",
            Self::Ready => "ready",
            Self::Answered => "answered",
        }
    }
}

// === impl StartPhases ===

impl StartPhases {
    fn slot(&mut self, phase: Phase) -> &mut Option<Duration> {
        match phase {
            Phase::Metadata => &mut self.metadata,
            Phase::Created => &mut self.created,
            Phase::Scheduled => &mut self.scheduled,
            Phase::Listening => &mut self.listening,
            Phase::Address => &mut self.address,
            Phase::Ready => &mut self.ready,
            Phase::Answered => &mut self.answered,
        }
    }
}

// === impl Start ===

impl Start {
    /// Returns the start of a pod that is requested now; `asked_by` is the span of the request that
    /// needs the pod, if any.
    pub(crate) fn new(
        pod: &PodName,
        slot: PodName,
        asked_by: Option<&Span>,
        tracing: Option<Tracing>,
    ) -> Self {
        let span = debug_span!(parent: None, "start", %pod);
        // The request may end long before the start: the start joins its trace but does not hold
        // its span.
        if let (Some(request), Some(tracing)) = (asked_by, tracing) {
            let mut headers = http::HeaderMap::new();
            (tracing.inject)(request, &mut headers);
            (tracing.join)(&span, &headers);
        }
        let steps = Steps {
            create: Some(debug_span!(parent: &span, "create")),
            schedule: Some(debug_span!(parent: &span, "schedule")),
            listen: Some(debug_span!(parent: &span, "listen")),
            address: Some(debug_span!(parent: &span, "address")),
            answer: None,
        };
        Self {
            slot,
            asked: Instant::now(),
            phases: StartPhases::default(),
            awaited: asked_by.is_some(),
            span: Some(span),
            steps,
        }
    }

    /// Returns the slot that the pod is to fill.
    pub(crate) fn slot(&self) -> &PodName {
        &self.slot
    }

    /// Returns the durations of the steps so far.
    pub(crate) fn phases(&self) -> StartPhases {
        self.phases
    }

    /// Records the duration of the image's lookup.
    pub(crate) fn looked_up(&mut self, took: Duration) {
        self.phases.metadata = Some(took);
    }

    /// Records a step. Returns its duration the first time, and none afterwards.
    pub(crate) fn reach(&mut self, phase: Phase) -> Option<Duration> {
        let slot = self.phases.slot(phase);
        if slot.is_some() {
            return None;
        }
        let took = self.asked.elapsed();
        *slot = Some(took);
        self.trace(phase);
        Some(took)
    }

    fn trace(&mut self, phase: Phase) {
        self.steps.end(phase);
        if phase == Phase::Ready
            && let Some(span) = self.span.take()
        {
            if self.awaited {
                self.steps.answer = Some(debug_span!(parent: &span, "answer"));
            }
            // A span ends at the time it was last exited, even if its children are still open.
            span.in_scope(|| ());
        }
    }
}

// === impl Steps ===

impl Steps {
    fn end(&mut self, phase: Phase) {
        match phase {
            Phase::Metadata => {}
            Phase::Created => self.create = None,
            Phase::Scheduled => self.schedule = None,
            Phase::Address => self.address = None,
            Phase::Listening | Phase::Ready => self.listen = None,
            Phase::Answered => self.answer = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_timed_once() {
        let mut start = Start::new(&"fn-1-x7k2p".into(), "fn-1".into(), None, None);
        start.looked_up(Duration::from_millis(3));
        let created = start.reach(Phase::Created);
        assert!(created.is_some());
        assert_eq!(start.reach(Phase::Created), None);
        let phases = start.phases();
        assert_eq!(phases.created, created);
        assert_eq!(phases.metadata, Some(Duration::from_millis(3)));
        assert_eq!(phases.answered, None);
    }

    #[test]
    fn steps_may_come_in_any_order() {
        let mut start = Start::new(&"fn-1-x7k2p".into(), "fn-1".into(), None, None);
        for phase in [
            Phase::Scheduled,
            Phase::Listening,
            Phase::Created,
            Phase::Ready,
            Phase::Address,
            Phase::Answered,
        ] {
            assert!(start.reach(phase).is_some(), "{phase:?}");
        }
        let phases = start.phases();
        assert!(phases.scheduled <= phases.created && phases.created <= phases.answered);
    }
}
