//! What the fleets share: who asks, which names are taken, what is due when.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use runner_core::EvaluationError;

use crate::{
    Action, Attempt, Counters, Limits, PodName, RequestId, Template, Time, Uid,
    agenda::{Agenda, Due},
    fleet::{FleetId, PodKey},
};

/// The records all fleets write to.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) limits: Limits,
    /// What pods are made from now.
    pub(crate) template: Template,
    pub(crate) requests: HashMap<RequestId, Held>,
    /// Every name of a pod or a slot known to be in use, and whose it is.
    pub(crate) names: HashMap<PodName, FleetId>,
    pub(crate) predecessors: Predecessors,
    pub(crate) agenda: Agenda,
    pub(crate) background: Background,
    pub(crate) counters: Counters,
    pub(crate) draining: bool,
    extensions: Vec<(FleetId, PodKey)>,
    next_attempt: u64,
    next_pod: u64,
}

/// The last pod that was in each slot, so that its successor gets another name.
#[derive(Debug, Default)]
pub(crate) struct Predecessors {
    uids: HashMap<PodName, Uid>,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) fleet: FleetId,
    pub(crate) arrived: Time,
    pub(crate) deadline: Option<Time>,
    pub(crate) place: Place,
    /// Number of pods that were lost with the request on them.
    pub(crate) retries: u32,
    /// What the fleet's count of time without a ready pod showed when the request arrived.
    pub(crate) unready_mark: Duration,
    /// What it spent on a pod that was lost.
    pub(crate) lost: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this place of its fleet's queue.
    Queued(i64),
    /// At a pod, since then.
    On(PodKey, Time),
}

/// Starts that no request waits for, a few at a time.
#[derive(Debug, Default)]
pub(crate) struct Background {
    running: HashSet<FleetId>,
    waiting: VecDeque<FleetId>,
}

/// One event being handled: the time, the records, and what is to be done.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) out: &'a mut Vec<Action>,
}

// === impl Predecessors ===

impl Predecessors {
    /// Slots remembered at most. A forgotten slot may see the name of its first pod again, which is
    /// free by then.
    const MAX_SLOTS: usize = 4096;

    pub(crate) fn note(&mut self, slot: &PodName, uid: Uid) {
        if self.uids.len() >= Self::MAX_SLOTS && !self.uids.contains_key(slot) {
            self.uids.clear();
        }
        self.uids.insert(slot.clone(), uid);
    }

    pub(crate) fn last_in(&self, slot: &PodName) -> Option<&Uid> {
        self.uids.get(slot)
    }
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn new(limits: Limits, template: Template) -> Self {
        Self {
            limits,
            template,
            requests: HashMap::new(),
            names: HashMap::new(),
            predecessors: Predecessors::default(),
            agenda: Agenda::default(),
            background: Background::default(),
            counters: Counters::default(),
            draining: false,
            extensions: Vec::new(),
            next_attempt: 0,
            next_pod: 0,
        }
    }

    pub(crate) fn new_attempt(&mut self) -> Attempt {
        self.next_attempt += 1;
        Attempt(self.next_attempt)
    }

    pub(crate) fn new_pod(&mut self) -> PodKey {
        self.next_pod += 1;
        PodKey(self.next_pod)
    }

    /// Notes that a pod's `reclaim-after` is behind; the first note of a batch sets its time.
    pub(crate) fn note_extension(&mut self, now: Time, fleet: FleetId, pod: PodKey) {
        if self.extensions.is_empty() {
            let at = self.agenda.not_before(now + self.limits.extend_batch);
            self.agenda.add(at, Due::Extensions);
        }
        self.extensions.push((fleet, pod));
    }

    pub(crate) fn take_extensions(&mut self) -> Vec<(FleetId, PodKey)> {
        std::mem::take(&mut self.extensions)
    }
}

// === impl Background ===

impl Background {
    /// Whether the fleet may start a pod now; if not, its turn comes.
    pub(crate) fn enter(&mut self, fleet: FleetId, limit: usize) -> bool {
        if self.running.contains(&fleet) || self.running.len() < limit.max(1) {
            self.running.insert(fleet);
            return true;
        }
        if !self.waiting.contains(&fleet) {
            self.waiting.push_back(fleet);
        }
        false
    }

    pub(crate) fn leave(&mut self, fleet: FleetId) {
        self.running.remove(&fleet);
    }

    /// Number of fleets that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether a fleet waits and may start a pod now.
    pub(crate) fn has_turn(&self, limit: usize) -> bool {
        !self.waiting.is_empty() && self.running.len() < limit.max(1)
    }

    /// The fleet that has waited longest.
    pub(crate) fn next(&mut self) -> Option<FleetId> {
        self.waiting.pop_front()
    }
}

// === impl Step ===

impl Step<'_> {
    /// Answers a request with an error and forgets it. Its place is the caller's to free.
    pub(crate) fn reject(&mut self, request: RequestId, error: EvaluationError) {
        if let Some(held) = self.ledger.requests.remove(&request) {
            self.unschedule(request, &held);
            self.out.push(Action::Reject { request, error });
        }
    }

    /// A request's deadline is on the agenda only while it is queued: a pod that runs it is told
    /// the deadline itself.
    pub(crate) fn unschedule(&mut self, request: RequestId, held: &Held) {
        if let (Place::Queued(_), Some(deadline)) = (held.place, held.deadline) {
            self.ledger.agenda.remove(deadline, Due::Request(request));
        }
    }
}
