//! The pool's record of one pod.

use std::sync::Arc;

use crate::{Attempt, Leave, PodName, RequestId, TemplateVersion, Time, Uid};

/// Number of a pod in this process; unlike names, numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodKey(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) key: PodKey,
    pub(crate) name: PodName,
    /// Name of the pod's slot: the pod's label and the name of its service.
    pub(crate) slot: PodName,
    /// Unknown until the API server answers, the watch shows the pod, or the pod announces itself.
    pub(crate) uid: Option<Uid>,
    pub(crate) resource_version: Option<Arc<str>>,
    pub(crate) template: TemplateVersion,
    /// Whether the pod is of the current template; other pods get no requests.
    pub(crate) current: bool,
    /// Whether the pod's template is known to have been replaced, not merely unknown to this
    /// process.
    pub(crate) superseded: bool,
    /// Whether the pod has another wrapper than new pods get, as after an upgrade.
    ///
    /// The pod is used, but not kept beyond its TTL.
    pub(crate) has_other_wrapper: bool,
    pub(crate) life: Life,
    /// Time at which `life` began.
    pub(crate) since: Time,
    pub(crate) born: Time,
    /// The attempt that created the pod, if this process made it.
    pub(crate) attempt: Option<Attempt>,
    pub(crate) parting: Parting,
    /// Earliest time of the next delete, after one failed without a conflict.
    pub(crate) delete_after: Option<Time>,
    /// Time at which the last delete was sent.
    pub(crate) delete_sent: Time,
    pub(crate) in_flight: Vec<RequestId>,
    pub(crate) served: u64,
    /// Time at which this process last used the pod.
    pub(crate) last_used: Option<Time>,
    /// The annotation as last observed.
    pub(crate) reclaim_after: Option<Time>,
    /// The `reclaim-after` that this process last wrote, and the time of the write.
    pub(crate) asked: Option<(Time, Time)>,
    /// Time of the last evidence that another replica made or used the pod.
    pub(crate) foreign_use: Option<Time>,
    /// Whether the watch has shown the pod.
    pub(crate) observed: bool,
    /// Whether the watch shows the pod as ready.
    ///
    /// An announcement comes seconds before, so "not ready" is significant only after this was set.
    pub(crate) watch_ready: bool,
    /// The condition that a starting pod waits for, as Kubernetes reports it.
    pub(crate) waits_for: Option<Arc<str>>,
    /// Whether an extension is already recorded.
    pub(crate) noted: bool,
    /// Whether the annotation exceeds a TTL that was shortened since.
    pub(crate) overlong: bool,
    pub(crate) wake: Option<Time>,
}

/// State of a pod with regard to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The pod's creation was requested and is not confirmed.
    Creating,
    /// The pod exists but is not ready.
    Starting,
    Ready,
    /// The pod lost a call or turned unready, and is being probed.
    Suspect,
    /// This process has given up the pod; another replica may still use it.
    Abandoned(Leave),
    /// The pod has failed for every replica.
    Failed,
}

/// State of a pod's deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    No,
    /// A delete at this resourceVersion was sent.
    Asked(Arc<str>),
    /// A delete at this resourceVersion was refused; the watch will show the change.
    Conflicted(Arc<str>),
    /// The watch shows that the pod is being deleted, which cannot be undone.
    Seen,
}

// === impl Pod ===

impl Pod {
    pub(crate) fn new(
        key: PodKey,
        name: PodName,
        slot: PodName,
        template: TemplateVersion,
        now: Time,
    ) -> Self {
        Self {
            key,
            name,
            slot,
            uid: None,
            resource_version: None,
            template,
            current: true,
            superseded: false,
            has_other_wrapper: false,
            life: Life::Creating,
            since: now,
            born: now,
            attempt: None,
            parting: Parting::No,
            delete_after: None,
            delete_sent: now,
            in_flight: Vec::new(),
            served: 0,
            last_used: None,
            reclaim_after: None,
            asked: None,
            foreign_use: None,
            observed: false,
            watch_ready: false,
            waits_for: None,
            noted: false,
            overlong: false,
            wake: None,
        }
    }

    /// Returns the time until which `reclaim-after` keeps the pod.
    ///
    /// A value that this process wrote counts before the watch shows it.
    pub(crate) fn promised(&self) -> Option<Time> {
        self.reclaim_after.max(self.asked.map(|(value, _)| value))
    }

    /// Returns whether the pod counts against the function's maximum.
    ///
    /// A pod whose deletion was only requested counts, because the delete may be refused.
    pub(crate) fn is_live(&self) -> bool {
        self.current
            && self.parting != Parting::Seen
            && !matches!(self.life, Life::Abandoned(_) | Life::Failed)
    }

    /// Returns whether the pod may get requests.
    pub(crate) fn is_open(&self) -> bool {
        self.life == Life::Ready
            && self.current
            && self.parting == Parting::No
            && self.uid.is_some()
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.life, Life::Creating | Life::Starting)
    }

    pub(crate) fn is_uid(&self, uid: &Uid) -> bool {
        self.uid.as_ref() == Some(uid)
    }

    pub(crate) fn enter(&mut self, life: Life, now: Time) {
        self.life = life;
        self.since = now;
    }

    /// Removes a request from the pod; returns `false` if the request is not on it.
    pub(crate) fn release(&mut self, request: RequestId) -> bool {
        match self.in_flight.iter().position(|held| *held == request) {
            Some(at) => {
                self.in_flight.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Returns the rank by which surplus pods stay: lower slots first, the same for every replica.
    pub(crate) fn rank(&self) -> (usize, &str, &str) {
        let slot = self.slot.as_str();
        (slot.len(), slot, self.name.as_str())
    }
}
