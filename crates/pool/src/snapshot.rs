//! The state of the pool for status output and metrics.

use std::{sync::Arc, time::Duration};

use runner_core::{EvaluationError, ImageReference};

use crate::{
    PodName, Pool, Settings, Time, Uid,
    fleet::{Fleet, Life, Parting, Pod},
};

/// The state of the whole pool at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The functions, sorted by image.
    pub functions: Vec<FunctionStatus>,
    /// The resourceVersion of the current pod template; empty until one was read.
    pub template: Arc<str>,
    /// Counts of events since the pool was created.
    pub counters: Counters,
    /// Whether the pool is draining and accepts no new requests.
    pub draining: bool,
}

/// Counts of events since the pool was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of pod creations requested.
    pub created: u64,
    /// Number of pod deletions requested.
    pub deleted: u64,
    /// Number of adopted pods, which this process did not create.
    pub adopted: u64,
    /// Number of failed starts.
    pub starts_failed: u64,
}

/// The state of one function.
#[derive(Clone, Debug)]
pub struct FunctionStatus {
    /// The image, pinned to a digest.
    pub image: Arc<ImageReference>,
    /// The settings of the function's pods.
    pub settings: Settings,
    /// Number of requests in the queue.
    pub queued: usize,
    /// Whether the tag of the function now points at another digest.
    pub superseded: bool,
    /// The last start failure, if it is remembered, and the time until the next attempt is allowed.
    pub start_failure: Option<(EvaluationError, Duration)>,
    /// The pods of the function.
    pub pods: Vec<PodStatus>,
}

/// The state of one pod.
#[derive(Clone, Debug)]
pub struct PodStatus {
    /// Name of the pod.
    pub name: PodName,
    /// Uid of the pod, once it is known.
    pub uid: Option<Uid>,
    /// State of the pod.
    pub state: PodState,
    /// Whether the pod is of the current template.
    pub current: bool,
    /// Time since this process created or first observed the pod.
    pub age: Duration,
    /// Number of requests on the pod now.
    pub in_flight: usize,
    /// Number of requests from this process that the pod has answered.
    pub served: u64,
    /// Time for which the pod is kept if it is not used again.
    pub ttl_left: Duration,
}

/// State of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PodState {
    /// The pod's creation was requested and is not confirmed.
    Creating,
    /// The pod exists but is not ready.
    Starting,
    /// The pod is ready and serves requests.
    Ready,
    /// The pod lost a call or turned unready, and is being probed.
    Suspect,
    /// This process no longer uses the pod, but another replica may.
    Abandoned,
    /// The pod has failed.
    Failed,
    /// The pod's deletion was requested or observed.
    Deleting,
}

// === impl Pool ===

impl Pool {
    /// Returns the state of the whole pool.
    ///
    /// The call visits all pods: it is meant for status output, not for every request.
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
