//! The pool: passes each event to the fleet it concerns.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use runner_core::{EvaluationError, Reason};

use crate::{
    Action, Counters, Event, Function, Limits, Observed, Outcome, PodName, PodPhase, Request,
    RequestId, Template, Time, Uid,
    agenda::Due,
    fleet::{Fleet, FleetId},
    ledger::{Ledger, Place, Step},
};

mod due;

/// The pods of all functions.
///
/// The [crate] documentation describes the scope of the pool.
#[derive(Debug)]
pub struct Pool {
    fleets: HashMap<FleetId, Fleet>,
    /// Fleets by pinned image.
    by_image: HashMap<Arc<str>, FleetId>,
    /// The fleet of the digest that each tag points at, according to requests and configuration.
    by_tag: HashMap<Arc<str>, FleetId>,
    /// The pinned images of the warm set.
    warm: HashSet<Arc<str>>,
    ledger: Ledger,
    next_fleet: u64,
}

// === impl Pool ===

impl Pool {
    /// Creates a pool without pods that makes new pods from `template`.
    #[must_use]
    pub fn new(limits: Limits, template: impl Into<Template>) -> Self {
        Self {
            fleets: HashMap::new(),
            by_image: HashMap::new(),
            by_tag: HashMap::new(),
            warm: HashSet::new(),
            ledger: Ledger::new(limits, template.into()),
            next_fleet: 0,
        }
    }

    /// Handles an event at the time `now` and appends the resulting actions to `actions`.
    ///
    /// `now` must not decrease. An event that contradicts the state of the pool (the end of an
    /// unknown pod, the completion of a cancelled request) is late, not wrong, and changes nothing.
    pub fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let out = actions;
        self.ledger.agenda.begin(now);
        match event {
            Event::Request(request) => self.request(now, &request, out),
            Event::Cancel(request) => self.cancel(now, request, out),
            Event::Done {
                request,
                pod,
                outcome,
            } => self.done(now, request, &pod, &outcome, out),
            Event::Created {
                name,
                attempt,
                uid,
                resource_version,
            } => {
                self.with_name(&name, now, out, |fleet, step| {
                    fleet.created(attempt, &uid, &resource_version, step);
                });
            }
            Event::StartFailed {
                name,
                attempt,
                failure,
            } => {
                self.with_name(&name, now, out, |fleet, step| {
                    fleet.start_failed(attempt, &failure, step);
                });
            }
            Event::Ready { name, uid } => {
                self.with_name(&name, now, out, |fleet, step| fleet.answered(&uid, step));
            }
            Event::ProbeFailed { name, uid } => {
                self.with_name(&name, now, out, |fleet, step| {
                    fleet.probe_failed(&uid, step);
                });
            }
            Event::Pod(seen) => self.observed(now, seen, out),
            Event::PodGone { name, uid } => {
                self.with_name(&name, now, out, |fleet, step| fleet.gone(&uid, step));
            }
            Event::Listed(present) => self.listed(now, &present, out),
            Event::DeleteFailed {
                name,
                uid,
                conflict,
            } => {
                self.with_name(&name, now, out, |fleet, step| {
                    fleet.delete_failed(&uid, conflict, step);
                });
            }
            Event::ExtendFailed { name, uid } => {
                self.with_name(&name, now, out, |fleet, step| {
                    fleet.extend_failed(&uid, step);
                });
            }
            Event::Configured(functions) => self.configured(now, &functions, out),
            Event::TemplateChanged(template) => {
                self.ledger.template = template;
                self.with_all(now, out, |fleet, step| {
                    fleet.check_templates(step);
                    fleet.settle(step);
                });
            }
            Event::Tick => self.tick(now, out),
            Event::Drain { until } => {
                self.ledger.draining = true;
                self.ledger.agenda.add(until, Due::Drained);
            }
        }
        self.take_turns(now, out);
    }

    /// Returns the time at which [`Event::Tick`] must be sent, if no other event comes before.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.ledger.agenda.next()
    }

    /// Returns the number of requests that have not been answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.ledger.requests.len()
    }

    /// Returns whether the pool is draining and accepts no new requests.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.ledger.draining
    }

    /// Returns counts of events since the pool was created.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.ledger.counters
    }

    pub(crate) fn template_version(&self) -> Arc<str> {
        Arc::clone(&self.ledger.template.version)
    }

    pub(crate) fn fleets(&self) -> impl Iterator<Item = &Fleet> {
        self.fleets.values()
    }

    fn request(&mut self, now: Time, request: &Request, out: &mut Vec<Action>) {
        if self.ledger.requests.contains_key(&request.id) {
            return;
        }
        if self.ledger.draining {
            out.push(Action::Reject {
                request: request.id,
                error: draining(),
            });
            return;
        }
        let id = self.fleet_of(now, &request.function, out);
        self.with(id, now, out, |fleet, step| fleet.arrive(request, step));
    }

    fn cancel(&mut self, now: Time, request: RequestId, out: &mut Vec<Action>) {
        if let Some(held) = self.ledger.requests.remove(&request) {
            self.with(held.fleet, now, out, |fleet, step| {
                step.unschedule(request, &held);
                fleet.cancel(request, held.place, step);
            });
        }
    }

    fn done(
        &mut self,
        now: Time,
        request: RequestId,
        pod: &Uid,
        outcome: &Outcome,
        out: &mut Vec<Action>,
    ) {
        let Some(held) = self.ledger.requests.get(&request) else {
            return;
        };
        let (id, place) = (held.fleet, held.place);
        let assigned = match place {
            Place::On(key, _) => self.fleets.get(&id).and_then(|fleet| {
                fleet
                    .pods
                    .iter()
                    .find(|known| known.key == key && known.is_uid(pod))
            }),
            Place::Queued(_) => None,
        };
        match (assigned.map(|known| known.key), outcome) {
            (Some(key), _) => {
                self.with(id, now, out, |fleet, step| {
                    fleet.done(request, key, outcome, step);
                });
            }
            // The pod was given up but has answered: the caller has the result.
            (None, Outcome::Answered) => self.cancel(now, request, out),
            (None, Outcome::PodLost { .. }) => {}
        }
    }

    /// Returns the fleet of a requested or configured function, and records that the function's tag
    /// now points at its digest.
    fn fleet_of(&mut self, now: Time, function: &Arc<Function>, out: &mut Vec<Action>) -> FleetId {
        let id = match self.by_image.get(function.key()) {
            Some(&id) => id,
            None => self.found(function, |id| Fleet::new(id, Arc::clone(function), now)),
        };
        self.with_kept(id, now, out, |fleet, step| fleet.inform(function, step));
        if let Some(tag) = function.tag()
            && self.by_tag.get(tag) != Some(&id)
        {
            if let Some(fleet) = self.fleets.get_mut(&id) {
                fleet.superseded = false;
            }
            if let Some(left) = self.by_tag.insert(Arc::clone(tag), id) {
                self.with(left, now, out, |fleet, step| {
                    fleet.supersede();
                    fleet.settle(step);
                });
            }
        }
        id
    }

    fn found(&mut self, function: &Function, make: impl FnOnce(FleetId) -> Fleet) -> FleetId {
        self.next_fleet += 1;
        let id = FleetId(self.next_fleet);
        self.by_image.insert(Arc::clone(function.key()), id);
        self.fleets.insert(id, make(id));
        id
    }

    fn observed(&mut self, now: Time, seen: Observed, out: &mut Vec<Action>) {
        let function = Function::of_pod(Arc::clone(&seen.image), self.ledger.limits.adopted);
        if let Some(&owner) = self.ledger.names.get(&seen.name)
            && let Some(fleet) = self.fleets.get(&owner)
            && let Some(at) = fleet.pods.iter().position(|pod| pod.name == seen.name)
        {
            // A pod without a uid is one that this process asked for. The observed pod of that name
            // is either the same pod, or one that took the slot first. The latter serves as well,
            // unless it is being deleted or belongs to another function.
            let same = match &fleet.pods[at].uid {
                // A pod whose image has no digest may turn out to belong to another function once
                // the running digest is known.
                Some(uid) => *uid == seen.uid && fleet.function.key() == function.key(),
                None => {
                    fleet.function.key() == function.key()
                        && !matches!(seen.phase, PodPhase::Deleting)
                }
            };
            let asked_for = fleet.pods[at].uid.is_none();
            if same {
                self.with(owner, now, out, |fleet, step| fleet.observe(at, seen, step));
                return;
            }
            self.with(owner, now, out, |fleet, step| {
                if asked_for {
                    fleet.withdraw(at, &seen, step);
                } else {
                    fleet.displace(at, &seen, step);
                }
            });
        }
        let id = match self.by_image.get(function.key()) {
            Some(&id) => id,
            None => {
                let key = Arc::new(function);
                self.found(&key, |id| Fleet::adopted(id, Arc::clone(&key), now))
            }
        };
        self.with(id, now, out, |fleet, step| fleet.adopt(seen, step));
    }

    fn listed(&mut self, now: Time, present: &HashSet<Uid>, out: &mut Vec<Action>) {
        self.with_all(now, out, |fleet, step| {
            let gone: Vec<Uid> = fleet
                .pods
                .iter()
                .filter(|pod| pod.observed)
                .filter_map(|pod| pod.uid.clone())
                .filter(|uid| !present.contains(uid))
                .collect();
            for uid in gone {
                fleet.gone(&uid, step);
            }
        });
    }

    fn configured(&mut self, now: Time, functions: &[Arc<Function>], out: &mut Vec<Action>) {
        let wanted: HashSet<_> = functions
            .iter()
            .map(|function| Arc::clone(function.key()))
            .collect();
        let before = std::mem::replace(&mut self.warm, wanted);
        for function in functions {
            let id = self.fleet_of(now, function, out);
            self.with(id, now, out, |fleet, step| fleet.warm(step));
        }
        for left in before.difference(&self.warm.clone()) {
            if let Some(&id) = self.by_image.get(left) {
                self.with(id, now, out, |fleet, step| fleet.cool(step));
            }
        }
    }

    fn with_name(
        &mut self,
        name: &PodName,
        now: Time,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Fleet, &mut Step<'_>),
    ) {
        if let Some(&id) = self.ledger.names.get(name) {
            self.with(id, now, out, act);
        }
    }

    /// Applies `act` to a fleet, and removes the fleet if it is empty afterwards.
    fn with(
        &mut self,
        id: FleetId,
        now: Time,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Fleet, &mut Step<'_>),
    ) {
        self.with_kept(id, now, out, act);
        if self.fleets.get(&id).is_some_and(Fleet::is_spent) {
            self.disband(id);
        }
    }

    fn with_kept(
        &mut self,
        id: FleetId,
        now: Time,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Fleet, &mut Step<'_>),
    ) {
        if let Some(fleet) = self.fleets.get_mut(&id) {
            act(
                fleet,
                &mut Step {
                    now,
                    ledger: &mut self.ledger,
                    out,
                },
            );
        }
    }

    fn with_all(
        &mut self,
        now: Time,
        out: &mut Vec<Action>,
        mut act: impl FnMut(&mut Fleet, &mut Step<'_>),
    ) {
        // In order of creation: the result must not depend on the order of a hash map.
        let mut ids: Vec<_> = self.fleets.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.with(id, now, out, &mut act);
        }
    }

    fn disband(&mut self, id: FleetId) {
        if let Some(mut fleet) = self.fleets.remove(&id) {
            fleet.disband(&mut self.ledger);
            self.by_image.remove(fleet.function.key());
            if let Some(tag) = fleet.function.tag()
                && self.by_tag.get(tag) == Some(&id)
            {
                self.by_tag.remove(tag);
            }
        }
    }
}

fn draining() -> EvaluationError {
    EvaluationError::new(Reason::Draining, "the function runner is shutting down")
}
