//! The pool's state for people and metrics.

use std::{sync::Arc, time::Duration};

use runner_core::{EvaluationError, ImageReference};

use crate::{
    PodName, Pool, Settings, Time, Uid,
    fleet::{Fleet, Life, Parting, Pod},
};

/// Everything the pool holds, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The functions, by image.
    pub functions: Vec<FunctionStatus>,
    /// The resource version of the pod template in force; empty until one was read.
    pub template: Arc<str>,
    /// What happened so far.
    pub counters: Counters,
    /// Whether the pool takes no more requests.
    pub draining: bool,
}

/// What happened since the pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pods asked for.
    pub created: u64,
    /// Deletes asked for.
    pub deleted: u64,
    /// Pods found that this process did not make.
    pub adopted: u64,
    /// Starts that failed.
    pub starts_failed: u64,
    /// Announcements that belonged to no pod waited for.
    pub announcements_refused: u64,
}

/// One function.
#[derive(Clone, Debug)]
pub struct FunctionStatus {
    /// Its image, pinned to a digest.
    pub image: Arc<ImageReference>,
    /// What holds for its pods.
    pub settings: Settings,
    /// Requests that wait.
    pub queued: usize,
    /// Whether its tag points at another digest now.
    pub superseded: bool,
    /// Why the last start failed, if that is remembered, and how long until the next may be tried.
    pub start_failure: Option<(EvaluationError, Duration)>,
    /// Its pods.
    pub pods: Vec<PodStatus>,
}

/// One pod.
#[derive(Clone, Debug)]
pub struct PodStatus {
    /// Its name.
    pub name: PodName,
    /// What the API server calls it, once that is known.
    pub uid: Option<Uid>,
    /// Where it is in its life.
    pub state: PodState,
    /// Whether it is of the template in force.
    pub current: bool,
    /// How long this process has known it.
    pub age: Duration,
    /// Requests it has now.
    pub in_flight: usize,
    /// Requests it answered to this process.
    pub served: u64,
    /// How long it is kept if nobody uses it.
    pub ttl_left: Duration,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PodState {
    /// Asked for.
    Creating,
    /// There, but not ready.
    Starting,
    /// Serving.
    Ready,
    /// Being probed.
    Suspect,
    /// Given up here.
    Abandoned,
    /// Failed.
    Failed,
    /// On its way out.
    Deleting,
}

// === impl Pool ===

impl Pool {
    /// The state of everything. Costs a walk over all pods: for people, not for each request.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let mut functions: Vec<_> = self
            .fleets()
            .map(|fleet| FunctionStatus::of(fleet, now))
            .collect();
        functions.sort_by_cached_key(|function| function.image.to_string());
        Snapshot {
            functions,
            template: self.template_version(),
            counters: self.counters(),
            draining: self.is_draining(),
        }
    }
}

// === impl FunctionStatus ===

impl FunctionStatus {
    fn of(fleet: &Fleet, now: Time) -> Self {
        Self {
            image: Arc::clone(fleet.function.image()),
            settings: *fleet.settings(),
            queued: fleet.queue.len(),
            superseded: fleet.superseded,
            start_failure: fleet
                .backoff
                .last()
                .map(|failure| (failure.error.clone(), failure.retry_at.since(now))),
            pods: fleet
                .pods
                .iter()
                .map(|pod| PodStatus::of(pod, fleet, now))
                .collect(),
        }
    }
}

// === impl PodStatus ===

impl PodStatus {
    fn of(pod: &Pod, fleet: &Fleet, now: Time) -> Self {
        let used = pod
            .last_used
            .map(|used| used + fleet.settings().time_to_live());
        Self {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            state: PodState::of(pod),
            current: pod.current,
            age: now.since(pod.born),
            in_flight: pod.in_flight.len(),
            served: pod.served,
            ttl_left: pod.reclaim_after.max(used).unwrap_or(now).since(now),
        }
    }
}

// === impl PodState ===

impl PodState {
    fn of(pod: &Pod) -> Self {
        match (&pod.parting, pod.life) {
            (Parting::Seen, _) => Self::Deleting,
            (_, Life::Abandoned(_)) => Self::Abandoned,
            (_, Life::Failed) => Self::Failed,
            (Parting::Asked(_) | Parting::Conflicted(_), _) => Self::Deleting,
            (Parting::No, Life::Creating) => Self::Creating,
            (Parting::No, Life::Starting) => Self::Starting,
            (Parting::No, Life::Ready) => Self::Ready,
            (Parting::No, Life::Suspect) => Self::Suspect,
        }
    }
}
