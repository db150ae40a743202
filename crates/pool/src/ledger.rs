//! State shared by all fleets: requests, names in use, appointments.

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

/// The records that all fleets read and write.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) limits: Limits,
    /// The template that new pods are made from.
    pub(crate) template: Template,
    pub(crate) requests: HashMap<RequestId, Held>,
    /// Every name of a pod or slot known to be in use, with its fleet.
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

/// The last pod of each slot, from which the name of the next pod is derived.
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
    /// The fleet's total time without a ready pod, as of the request's arrival.
    pub(crate) unready_mark: Duration,
    /// Time that the request spent on pods that were lost.
    pub(crate) lost: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The request is in the queue of its fleet, at this position.
    Queued(i64),
    /// The request has been on this pod since this time.
    On(PodKey, Time),
}

/// Fleets that start pods without a waiting request, a limited number at a time.
#[derive(Debug, Default)]
pub(crate) struct Background {
    running: HashSet<FleetId>,
    waiting: VecDeque<FleetId>,
}

/// The handling of one event: the time, the shared records, and the resulting actions.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) out: &'a mut Vec<Action>,
}

// === impl Predecessors ===

impl Predecessors {
    /// Maximum number of slots remembered.
    ///
    /// All are forgotten at the limit. A forgotten slot may then get the name of its first pod
    /// again, which is free by that time.
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

    /// Records that a pod's `reclaim-after` is behind.
    ///
    /// The first record of a batch schedules the write.
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
    /// Returns whether the fleet may start a pod now; if not, the fleet is queued for a later turn.
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

    /// Returns the number of fleets that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether a fleet waits and may start a pod now.
    pub(crate) fn has_turn(&self, limit: usize) -> bool {
        !self.waiting.is_empty() && self.running.len() < limit.max(1)
    }

    /// Removes and returns the fleet that has waited longest.
    pub(crate) fn next(&mut self) -> Option<FleetId> {
        self.waiting.pop_front()
    }
}

// === impl Step ===

impl Step<'_> {
    /// Answers a request with an error and forgets it.
    ///
    /// The calling function must free the request's place in the queue or on its pod.
    pub(crate) fn reject(&mut self, request: RequestId, error: EvaluationError) {
        if let Some(held) = self.ledger.requests.remove(&request) {
            self.unschedule(request, &held);
            self.out.push(Action::Reject { request, error });
        }
    }

    /// Removes the deadline of a queued request from the agenda.
    ///
    /// An assigned request has no entry there, because its pod receives the deadline with the call.
    pub(crate) fn unschedule(&mut self, request: RequestId, held: &Held) {
        if let (Place::Queued(_), Some(deadline)) = (held.place, held.deadline) {
            self.ledger.agenda.remove(deadline, Due::Request(request));
        }
    }
}
