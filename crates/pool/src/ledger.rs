//! What the fleets share: who asks, which names are taken, what is due when.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use runner_core::EvaluationError;

use crate::{
    Action, Attempt, Counters, Limits, PodName, RequestId, Time,
    agenda::{Agenda, Due},
    fleet::{FleetId, PodKey},
};

/// The records all fleets write to.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) limits: Limits,
    /// The resource version of the pod template in force.
    pub(crate) template: Arc<str>,
    pub(crate) requests: HashMap<RequestId, Held>,
    /// Every pod name known to be in use, and whose it is.
    pub(crate) names: HashMap<PodName, FleetId>,
    pub(crate) agenda: Agenda,
    pub(crate) background: Background,
    pub(crate) counters: Counters,
    pub(crate) draining: bool,
    extensions: Vec<(FleetId, PodKey)>,
    next_attempt: u64,
    next_pod: u64,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) fleet: FleetId,
    pub(crate) arrived: Time,
    pub(crate) deadline: Option<Time>,
    pub(crate) place: Place,
    pub(crate) retried: bool,
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

// === impl Ledger ===

impl Ledger {
    pub(crate) fn new(limits: Limits, template: Arc<str>) -> Self {
        Self {
            limits,
            template,
            requests: HashMap::new(),
            names: HashMap::new(),
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
            self.agenda
                .add(now + self.limits.extend_batch, Due::Extensions);
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

    /// The next fleet whose turn has come.
    pub(crate) fn next(&mut self, limit: usize) -> Option<FleetId> {
        if self.running.len() < limit.max(1) {
            self.waiting.pop_front()
        } else {
            None
        }
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
