//! The pods and the queue of one function.
//!
//! A fleet knows nothing of other fleets. Whatever happens to it, [`Fleet::settle`] brings it back
//! to rest: requests go to pods with room, pods are started for those that wait, and pods that are
//! not wanted go.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    Function, RequestId, Settings, TemplateVersion, Time,
    agenda::Due,
    backoff::Backoff,
    ledger::{Ledger, Step},
};

mod complaint;
mod leave;
mod pod;
mod queue;
mod start;
mod watch;

pub(crate) use pod::{Life, Parting, Pod, PodKey};

/// A fleet's number, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FleetId(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) id: FleetId,
    pub(crate) function: Arc<Function>,
    pub(crate) pods: Vec<Pod>,
    /// Waiting requests by place; a retried one goes before the first.
    pub(crate) queue: BTreeMap<i64, RequestId>,
    pub(crate) backoff: Backoff,
    /// Whether its tag has moved to another digest.
    pub(crate) superseded: bool,
    /// Whether it is known by its pods alone, not by a request or configuration.
    adopted: bool,
    /// Whether somebody names this digest himself, so that a moved tag does not end its use.
    pinned: bool,
    /// Whether a pod is wanted though nobody waits: roll-over.
    wants_one: bool,
    /// Whether configuration wants pods of the function kept ready.
    warm: bool,
    in_background: bool,
    /// Where the next search for a pod begins: round robin among equals.
    cursor: usize,
    unready_since: Option<Time>,
    unready_total: Duration,
    /// A moving average of how long an evaluation takes.
    pace: Duration,
    wake: Option<Time>,
}

/// A count of a fleet's pods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Census {
    /// Those that count against the maximum.
    pub(crate) live: usize,
    /// Live ones that may be given work.
    pub(crate) open: usize,
    /// Live ones that are not ready yet.
    pub(crate) starting: usize,
    /// Requests on live ones.
    pub(crate) in_flight: usize,
}

// === impl Fleet ===

impl Fleet {
    pub(crate) fn new(id: FleetId, function: Arc<Function>, now: Time) -> Self {
        Self {
            id,
            function,
            pods: Vec::new(),
            queue: BTreeMap::new(),
            backoff: Backoff::default(),
            superseded: false,
            adopted: false,
            pinned: false,
            wants_one: false,
            warm: false,
            in_background: false,
            cursor: 0,
            unready_since: Some(now),
            unready_total: Duration::ZERO,
            pace: Duration::ZERO,
            wake: None,
        }
    }

    /// A fleet known by a pod of it.
    pub(crate) fn adopted(id: FleetId, function: Arc<Function>, now: Time) -> Self {
        Self {
            adopted: true,
            ..Self::new(id, function, now)
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.function.settings()
    }

    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        for pod in self.pods.iter().filter(|pod| pod.is_live()) {
            census.live += 1;
            census.open += usize::from(pod.is_open());
            census.starting += usize::from(pod.is_starting());
            census.in_flight += pod.in_flight.len();
        }
        census
    }

    /// Whether nothing is left to remember.
    pub(crate) fn is_spent(&self) -> bool {
        self.pods.is_empty()
            && self.queue.is_empty()
            && !self.wants_one
            && !self.warm
            && self.backoff.last().is_none()
    }

    /// Brings the fleet to rest after something happened to it.
    pub(crate) fn settle(&mut self, step: &mut Step<'_>) {
        self.dispatch(step);
        self.scale(step);
        self.review(step);
        self.count_unready(step.now);
    }

    /// Takes over what a request or configuration says about the function.
    pub(crate) fn inform(&mut self, function: &Arc<Function>, step: &mut Step<'_>) {
        if Arc::ptr_eq(&self.function, function) {
            return;
        }
        self.pinned |= function.tag().is_none();
        let (known, told) = (self.settings(), function.settings());
        if self.adopted || (told.generation >= known.generation && told != known) {
            self.adopted = false;
            self.function = Arc::clone(function);
            self.curtail(step);
            self.check_templates(step);
        }
    }

    /// Keeps pods ready from now on, whether anybody calls the function or not.
    pub(crate) fn warm(&mut self, step: &mut Step<'_>) {
        self.warm = true;
        self.settle(step);
        self.plan_all(step);
    }

    /// Leaves the pods to their TTL from now on.
    pub(crate) fn cool(&mut self, step: &mut Step<'_>) {
        self.warm = false;
        self.wants_one = false;
        self.plan_all(step);
    }

    /// Number of pods that are kept ready, used or not.
    fn kept(&self) -> usize {
        if self.warm && !self.superseded {
            self.settings().kept_pods()
        } else {
            0
        }
    }

    /// The tag points at another digest now. Whoever names this digest himself is not concerned.
    pub(crate) fn supersede(&mut self) {
        self.superseded = !self.pinned;
        self.wants_one &= self.pinned;
    }

    /// Cancels appointments of a fleet that has nothing left.
    pub(crate) fn disband(&mut self, ledger: &mut Ledger) {
        ledger.agenda.clear(&mut self.wake, Due::Fleet(self.id));
        ledger.background.leave(self.id);
    }

    /// Looks again which pods are of the template in force. Pods that were and are no longer are
    /// known to be superseded; if that leaves none, a successor is started before they go.
    pub(crate) fn check_templates(&mut self, step: &mut Step<'_>) {
        let version = self.template(step);
        let had = self.census().live > 0;
        let mut changed = false;
        for pod in &mut self.pods {
            let current = pod.template.serves_for(&version);
            changed |= current != pod.current;
            pod.superseded =
                !current && (pod.superseded || pod.current || pod.template.is_older_than(&version));
            pod.current = current;
            pod.has_other_wrapper = pod.template.has_other_wrapper(&version);
        }
        if changed {
            self.backoff.reset();
            // What a function known by its pods alone overrides is not known: its successor waits for
            // the first request.
            self.wants_one |= had && !self.adopted && !self.superseded && self.census().live == 0;
        }
        self.plan_all(step);
    }

    pub(crate) fn template(&self, step: &Step<'_>) -> TemplateVersion {
        TemplateVersion::new(&step.ledger.template, self.settings().overrides)
    }

    fn index(&self, key: PodKey) -> Option<usize> {
        self.pods.iter().position(|pod| pod.key == key)
    }

    /// Keeps count of the time without a ready pod, so that a request can be told how much of its
    /// wait that was, without looking at waiting requests when a pod comes or goes.
    fn count_unready(&mut self, now: Time) {
        let open = self.pods.iter().any(Pod::is_open);
        match (open, self.unready_since) {
            (true, Some(since)) => {
                self.unready_total += now.since(since);
                self.unready_since = None;
            }
            (false, None) => self.unready_since = Some(now),
            _ => {}
        }
    }

    fn unready(&self, now: Time) -> Duration {
        self.unready_total
            + self
                .unready_since
                .map_or(Duration::ZERO, |since| now.since(since))
    }
}
