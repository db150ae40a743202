//! The pods and the queue of one function.
//!
//! A fleet is independent of other fleets. After every change, [`Fleet::settle`] brings it to rest:
//! requests go to pods with room, pods are started for waiting requests, and unwanted pods are
//! deleted.

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

/// Number of a fleet, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FleetId(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) id: FleetId,
    pub(crate) function: Arc<Function>,
    pub(crate) pods: Vec<Pod>,
    /// Waiting requests by position; a retried request goes before the first.
    pub(crate) queue: BTreeMap<i64, RequestId>,
    pub(crate) backoff: Backoff,
    /// Whether the function's tag has moved to another digest.
    pub(crate) superseded: bool,
    /// Whether the function is known only from its pods, not from a request or configuration.
    adopted: bool,
    /// Whether a caller or configuration names this digest directly, so that a moved tag does not
    /// end its use.
    pinned: bool,
    /// Whether a pod is wanted without a waiting request, after a template change.
    wants_one: bool,
    /// Whether the function is in the warm set.
    warm: bool,
    in_background: bool,
    /// Index at which the next search for a pod begins: round robin among equally loaded pods.
    cursor: usize,
    unready_since: Option<Time>,
    unready_total: Duration,
    /// Moving average of the duration of an evaluation.
    pace: Duration,
    wake: Option<Time>,
}

/// Counts of a fleet's pods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Census {
    /// Number of pods that count against the maximum.
    pub(crate) live: usize,
    /// Number of live pods that may get requests.
    pub(crate) open: usize,
    /// Number of live pods that are not ready yet.
    pub(crate) starting: usize,
    /// Number of requests on live pods.
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

    /// Creates the fleet of an adopted pod.
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

    /// Returns whether the fleet has no state left to remember.
    pub(crate) fn is_spent(&self) -> bool {
        self.pods.is_empty()
            && self.queue.is_empty()
            && !self.wants_one
            && !self.warm
            && self.backoff.last().is_none()
    }

    /// Brings the fleet to rest after a change.
    pub(crate) fn settle(&mut self, step: &mut Step<'_>) {
        self.dispatch(step);
        self.scale(step);
        self.review(step);
        self.count_unready(step.now);
    }

    /// Applies the settings of a request or of configuration, unless they are older than the
    /// present ones.
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

    /// Adds the function to the warm set: its pods are kept ready, whether used or not.
    pub(crate) fn warm(&mut self, step: &mut Step<'_>) {
        self.warm = true;
        self.settle(step);
        self.plan_all(step);
    }

    /// Removes the function from the warm set: its pods expire after their TTL.
    pub(crate) fn cool(&mut self, step: &mut Step<'_>) {
        self.warm = false;
        self.wants_one = false;
        self.plan_all(step);
    }

    /// Returns the number of pods that are kept ready, used or not.
    fn kept(&self) -> usize {
        if self.warm && !self.superseded {
            self.settings().kept_pods()
        } else {
            0
        }
    }

    /// Records that the tag now points at another digest, unless this digest is requested directly.
    pub(crate) fn supersede(&mut self) {
        self.superseded = !self.pinned;
        self.wants_one &= self.pinned;
    }

    /// Cancels the appointments of an empty fleet.
    pub(crate) fn disband(&mut self, ledger: &mut Ledger) {
        ledger.agenda.clear(&mut self.wake, Due::Fleet(self.id));
        ledger.background.leave(self.id);
    }

    /// Updates which pods are of the current template.
    ///
    /// A pod that is no longer of the current template is known to be superseded. If no live pod is
    /// left, a successor is started before the old pods are deleted.
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
            // The overrides of a function known only from its pods are unknown: its successor waits
            // for the first request.
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

    /// Adds up the time without a ready pod.
    ///
    /// A request's share of that time is the difference between two totals, so waiting requests
    /// need not be visited when a pod comes or goes.
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
