//! One pod, as far as the pool knows it.

use std::sync::Arc;

use crate::{Attempt, Leave, PodName, RequestId, TemplateVersion, Time, Uid};

/// A pod's number in this process. Names come back, numbers do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodKey(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) key: PodKey,
    pub(crate) name: PodName,
    /// Name of the slot the pod fills: its label and the name of its service.
    pub(crate) slot: PodName,
    /// Unknown until the API server answered, the watch shows the pod, or it announces itself.
    pub(crate) uid: Option<Uid>,
    pub(crate) resource_version: Option<Arc<str>>,
    pub(crate) template: TemplateVersion,
    /// Whether the pod is of the template in force: others get no work.
    pub(crate) current: bool,
    /// Whether the template is known to have been replaced, not merely unknown here.
    pub(crate) superseded: bool,
    /// Whether the pod has another wrapper than new pods get, as after an upgrade. It is used, but
    /// not kept beyond its TTL.
    pub(crate) has_other_wrapper: bool,
    pub(crate) life: Life,
    /// When `life` began.
    pub(crate) since: Time,
    pub(crate) born: Time,
    /// The attempt of ours that made it, if one did.
    pub(crate) attempt: Option<Attempt>,
    pub(crate) parting: Parting,
    /// A delete failed for no fault of the pod's: the next is not sent before.
    pub(crate) delete_after: Option<Time>,
    /// When the last delete was sent.
    pub(crate) delete_sent: Time,
    pub(crate) in_flight: Vec<RequestId>,
    pub(crate) served: u64,
    /// When this process last used it.
    pub(crate) last_used: Option<Time>,
    /// The annotation as last seen.
    pub(crate) reclaim_after: Option<Time>,
    /// What this process last wrote there, and when.
    pub(crate) asked: Option<(Time, Time)>,
    /// When another replica last showed that it made or used the pod.
    pub(crate) foreign_use: Option<Time>,
    /// Whether the watch has shown it.
    pub(crate) observed: bool,
    /// Whether the watch shows it ready. An announcement comes seconds before, so "not ready" means
    /// something only after this was set.
    pub(crate) watch_ready: bool,
    /// What Kubernetes says a starting pod waits for.
    pub(crate) waits_for: Option<Arc<str>>,
    /// Whether an extension is noted already.
    pub(crate) noted: bool,
    /// Whether the annotation promises more than a TTL that was shortened since.
    pub(crate) overlong: bool,
    pub(crate) wake: Option<Time>,
}

/// Where a pod is in its life, as far as work is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Asked for.
    Creating,
    /// There, but not ready.
    Starting,
    Ready,
    /// It lost a call or turned unready, and is being probed.
    Suspect,
    /// Given up here; another replica may see it differently.
    Abandoned(Leave),
    /// Failed for everybody.
    Failed,
}

/// Whether a pod is on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    No,
    /// A delete at this version was sent.
    Asked(Arc<str>),
    /// A delete at this version was refused: the watch will show what changed.
    Conflicted(Arc<str>),
    /// The watch shows it being deleted: there is no way back.
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

    /// What `reclaim-after` promises. What this process wrote holds before the watch shows it.
    pub(crate) fn promised(&self) -> Option<Time> {
        self.reclaim_after.max(self.asked.map(|(value, _)| value))
    }

    /// Whether it counts against the function's maximum. One whose deletion is merely asked for
    /// does: the delete may be refused.
    pub(crate) fn is_live(&self) -> bool {
        self.current
            && self.parting != Parting::Seen
            && !matches!(self.life, Life::Abandoned(_) | Life::Failed)
    }

    /// Whether it may be given work.
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

    /// Frees a request's place; false if it has none here.
    pub(crate) fn release(&mut self, request: RequestId) -> bool {
        match self.in_flight.iter().position(|held| *held == request) {
            Some(at) => {
                self.in_flight.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// The order in which surplus pods stay: lower slots first, the same for every replica.
    pub(crate) fn rank(&self) -> (usize, &str, &str) {
        let slot = self.slot.as_str();
        (slot.len(), slot, self.name.as_str())
    }
}
