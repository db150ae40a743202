//! Times each step in the start of a pod, for metrics, traces and the status service.

use std::time::Duration;

use runner_pool::{PodName, Time};

/// A step of a pod's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartStep {
    Metadata,
    Created,
    Scheduled,
    Listening,
    Address,
    Ready,
    Answered,
}

/// Durations of the steps of a pod's start; none: the step was not observed.
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
#[derive(Debug)]
pub(super) struct Start {
    slot: PodName,
    requested: Time,
    phases: StartPhases,
}

// === impl StartStep ===

impl StartStep {
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
    fn duration_of(&mut self, step: StartStep) -> &mut Option<Duration> {
        match step {
            StartStep::Metadata => &mut self.metadata,
            StartStep::Created => &mut self.created,
            StartStep::Scheduled => &mut self.scheduled,
            StartStep::Listening => &mut self.listening,
            StartStep::Address => &mut self.address,
            StartStep::Ready => &mut self.ready,
            StartStep::Answered => &mut self.answered,
        }
    }
}

// === impl Start ===

impl Start {
    /// Returns the start of a pod that is requested now.
    pub(super) fn new(slot: PodName, now: Time) -> Self {
        Self {
            slot,
            requested: now,
            phases: StartPhases::default(),
        }
    }

    /// Returns the slot that the pod is to fill.
    pub(super) fn slot(&self) -> &PodName {
        &self.slot
    }

    /// Returns the durations of the steps so far.
    pub(super) fn phases(&self) -> StartPhases {
        self.phases
    }

    /// Records the duration of the image's lookup.
    pub(super) fn looked_up(&mut self, took: Duration) {
        self.phases.metadata = Some(took);
    }

    /// Records a step. Returns its duration the first time, and none afterwards.
    pub(super) fn reach(&mut self, step: StartStep, now: Time) -> Option<Duration> {
        let duration = self.phases.duration_of(step);
        if duration.is_some() {
            return None;
        }
        *duration = Some(now.since(self.requested));
        *duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_each_step_once_and_in_any_order() {
        let at = |seconds: u64| Time::from_unix_secs(100 + seconds);
        let mut start = Start::new("fn-1".into(), at(0));
        start.looked_up(Duration::from_millis(3));
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(start.reach(StartStep::Listening, at(1)), seconds(1));
        assert_eq!(start.reach(StartStep::Created, at(2)), seconds(2));
        assert_eq!(start.reach(StartStep::Created, at(3)), None);
        let phases = start.phases();
        assert_eq!(phases.listening, seconds(1));
        assert_eq!(phases.created, seconds(2));
        assert_eq!(phases.metadata, Some(Duration::from_millis(3)));
        assert_eq!(phases.answered, None);
    }
}
