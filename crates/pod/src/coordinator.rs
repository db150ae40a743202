//! The coordinator: the decisions of the pod runtime as a pure state machine, inputs in, effects
//! out.
//!
//! The coordinator owns the pool and decides what the pool leaves open: whether the start of a pod
//! takes too long, at which address a pod is called, which services are created and removed, and
//! which announcements are accepted. It has no clock (the time comes with each input), no I/O and
//! no tasks. The driver carries out the [`Effect`]s and reports their results as [`Input`]s.

mod effect;
mod input;
mod observations;
mod pod;
mod services;
mod start;
#[cfg(test)]
mod tests;
mod token;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    net::IpAddr,
    time::Duration,
};

use runner_cluster::ServiceObservation;
use runner_core::{EvaluationError, Reason};
use runner_pool::{
    Action, Assign, Create, Event, Limits, Outcome, PodName, Pool, Snapshot, StartFailure, Time,
    Uid,
};

pub(crate) use effect::Effect;
pub(crate) use input::{CreateResult, Input, Observation};
pub use start::StartPhases;
pub(crate) use start::StartStep;
pub(crate) use token::AnnouncementOutcome;

use crate::{
    survey::{PodAddress, Survey},
    target::{Connect, Target},
};
use pod::PodRecord;
use start::Start;
use token::Token;

/// Largest number of events that decisions may add while one input is handled.
///
/// It is far above the number of pods and requests. Exceeding it is a defect, which must not stop
/// the runner.
const MAX_FOLLOWING_EVENTS: usize = 1_000_000;

/// The extent to which the state of the cluster is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// Pods and services have not been listed yet.
    ClusterUnknown,
    /// Pods and services have been listed; the templates have not been read yet.
    TemplatesUnknown,
    /// Everything that evaluations need is known.
    Ready,
}

/// The settings of the coordinator.
pub(crate) struct CoordinatorOptions {
    pub(crate) limits: Limits,
    pub(crate) connect: Connect,
    /// Domain of the services of function pods, such as `porch-fn-system.svc.cluster.local`.
    pub(crate) service_domain: String,
    /// Time without a node after which a pod counts as failed.
    pub(crate) unschedulable_timeout: Duration,
    /// Interval of the search for services without a pod and pods without a service.
    pub(crate) scan_interval: Duration,
    /// Source of the secrets of announcement tokens; none if there is no randomness.
    pub(crate) new_secret: Box<dyn FnMut() -> Option<String> + Send>,
}

/// The state of the pod runtime.
pub(crate) struct Coordinator {
    pool: Pool,
    options: CoordinatorOptions,
    /// Time after which the injection of a pod that has a node but no address is given up.
    ///
    /// It is shorter than the time for a pod to become ready, so that waiting requests get another
    /// pod.
    address_timeout: Duration,
    pods: HashMap<Uid, PodRecord>,
    services: HashMap<String, ServiceObservation>,
    /// Services without a pod, with the time at which that was first observed.
    orphans: HashMap<String, Time>,
    tokens: HashMap<PodName, Token>,
    /// Starts of pods for which the API server has not answered the create request yet.
    creating: HashMap<PodName, Start>,
    /// Whether templates that passed validation have been read.
    has_template: bool,
    /// The validation error of the newest templates, if they were rejected.
    template_error: Option<String>,
    pods_listed: bool,
    services_listed: bool,
    readiness: Readiness,
    /// Number of announcements refused because their token was unknown or already used.
    refused_announcements: u64,
    agenda: BTreeSet<(Time, Due)>,
    /// Actions of the pool that have not been handled; empty between inputs.
    actions: VecDeque<Action>,
    /// Buffer for the actions of one event; empty between events.
    new_actions: Vec<Action>,
}

/// The subject of an appointment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A time limit of a starting pod: to get a node, or an address.
    Start(Uid),
    /// A pod or service of this slot appeared or disappeared a while ago.
    Slot(String),
    /// All services are compared with all pods.
    Scan,
}

// === impl Coordinator ===

impl Coordinator {
    pub(crate) fn new(options: CoordinatorOptions) -> Self {
        Self {
            pool: Pool::new(options.limits.clone(), ""),
            address_timeout: options.limits.ready_timeout.mul_f32(0.75),
            pods: HashMap::new(),
            services: HashMap::new(),
            orphans: HashMap::new(),
            tokens: HashMap::new(),
            creating: HashMap::new(),
            has_template: false,
            template_error: None,
            pods_listed: false,
            services_listed: options.connect == Connect::Pod,
            readiness: Readiness::ClusterUnknown,
            refused_announcements: 0,
            agenda: BTreeSet::new(),
            actions: VecDeque::new(),
            new_actions: Vec::new(),
            options,
        }
    }

    /// Handles an input at the time `now` and appends the resulting effects.
    ///
    /// `now` must not decrease. An input about an unknown pod is late, not wrong, and changes
    /// nothing.
    pub(crate) fn handle(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Event(event) => {
                self.record(now, &event, effects);
                self.pass(now, event, effects);
            }
            Input::Observation(observation) => self.observe(now, observation, effects),
            Input::Created {
                create,
                result,
                looked_up,
            } => self.created(now, &create, result, looked_up, effects),
            Input::Knocked(uid) => self.knocked(now, &uid, effects),
            Input::Probed {
                name,
                uid,
                answered: None,
            } => self.pass(now, Event::ProbeFailed { name, uid }, effects),
            Input::Probed {
                name,
                uid,
                answered: Some(target),
            } => {
                self.connect(&uid, target, effects);
                self.pass(now, Event::Ready { name, uid }, effects);
            }
            Input::TargetAnswers { uid, target } => self.move_to(&uid, target, effects),
            Input::InjectionGivenUp(uid) => self.injection_given_up(now, &uid, effects),
            Input::Tick => self.tick(now, effects),
        }
    }

    /// Returns the time at which [`Input::Tick`] must be sent, if no other input comes before.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        // Nothing is decided before the cluster is known: a pod for a request may already exist.
        if self.readiness < Readiness::Ready {
            return None;
        }
        let own = self.agenda.first().map(|(at, _)| *at);
        let pool = self.pool.next_wakeup();
        own.into_iter().chain(pool).min()
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness
    }

    /// Returns the state of the pool, for metrics.
    pub(crate) fn snapshot(&self, now: Time) -> Snapshot {
        self.pool.snapshot(now)
    }

    /// Returns the state of all pods.
    pub(crate) fn survey(&self, now: Time) -> Survey {
        let addresses = self.pods.iter().filter_map(|(uid, pod)| {
            let target = pod.connection.clone().or_else(|| self.target(pod))?;
            let address = match target.authority {
                Some(_) => PodAddress::Service(target.address),
                None => PodAddress::Pod(target.address),
            };
            Some((uid.clone(), address))
        });
        let starts = self.pods.iter().filter_map(|(uid, pod)| {
            let start = pod.start.as_ref()?;
            Some((uid.clone(), start.phases()))
        });
        Survey {
            pool: self.pool.snapshot(now),
            addresses: addresses.collect(),
            starts: starts.collect(),
            announcements_refused: self.refused_announcements,
            template_error: self.template_error.clone(),
            cold: std::collections::BTreeMap::new(),
            injection: None,
        }
    }

    /// Checks an announcement: the token must be that of the pod's start and unused, and the pod
    /// awaited.
    pub(crate) fn announced(
        &mut self,
        now: Time,
        name: &PodName,
        secret: &str,
        address: IpAddr,
        effects: &mut Vec<Effect>,
    ) -> AnnouncementOutcome {
        let token = self.tokens.get_mut(name);
        let Some(token) = token.filter(|token| !token.used && token.is(secret)) else {
            self.refused_announcements += 1;
            return AnnouncementOutcome::Refused;
        };
        token.used = true;
        match token.pod.clone() {
            Some(uid) => self.listens(now, &uid, address, effects),
            None => {
                token.early_address = Some(address);
                AnnouncementOutcome::Accepted
            }
        }
    }

    /// Passes an event to the pool and handles the actions that it returns.
    fn pass(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) {
        self.pass_to_pool(now, event);
        // An action may lead to an event at once; the pool handles it before the next action.
        let mut following = 0;
        while let Some(action) = self.actions.pop_front() {
            let Some(event) = self.act(now, action, effects) else {
                continue;
            };
            following += 1;
            if following > MAX_FOLLOWING_EVENTS {
                // The next tick continues from here.
                tracing::error!(?event, "actions without an end: this is a defect");
                debug_assert!(false, "actions without an end");
                self.actions.clear();
                return;
            }
            self.pass_to_pool(now, event);
        }
    }

    fn pass_to_pool(&mut self, now: Time, event: Event) {
        self.pool.handle(now, event, &mut self.new_actions);
        self.actions.extend(self.new_actions.drain(..));
    }

    fn act(&mut self, now: Time, action: Action, effects: &mut Vec<Effect>) -> Option<Event> {
        match action {
            Action::Create(create) => return self.create(now, create, effects),
            Action::Delete(delete) => {
                let service = self.service_unused_without(&delete.uid);
                effects.push(Effect::DeletePod { delete, service });
            }
            Action::Assign(assign) => return self.assign(assign, effects),
            Action::Reject { request, error } => effects.push(Effect::Reject { request, error }),
            Action::Extend(extensions) => effects.push(Effect::ExtendPods(extensions)),
            Action::Probe { name, uid } => {
                let targets = self.pods.get(&uid).map(|pod| self.targets(pod));
                match targets.filter(|targets| !targets.is_empty()) {
                    Some(targets) => effects.push(Effect::Probe { name, uid, targets }),
                    None => return Some(Event::ProbeFailed { name, uid }),
                }
            }
        }
        None
    }

    fn create(&mut self, now: Time, create: Create, effects: &mut Vec<Effect>) -> Option<Event> {
        if !self.has_template {
            let why = self.template_error.as_deref();
            let why = why.unwrap_or("no pod template was read yet");
            let error = EvaluationError::new(Reason::PodStartFailed, why);
            return Some(Event::StartFailed {
                name: create.name,
                attempt: create.attempt,
                failure: StartFailure::Refused(error),
            });
        }
        let secret = (self.options.new_secret)();
        if let Some(secret) = secret.clone() {
            self.tokens.insert(create.name.clone(), Token::new(secret));
        }
        let start = Start::new(create.slot.clone(), now);
        self.creating.insert(create.name.clone(), start);
        effects.push(Effect::CreatePod { create, secret });
        None
    }

    fn assign(&mut self, assign: Assign, effects: &mut Vec<Effect>) -> Option<Event> {
        let lost = |detail: &str| {
            Some(Event::Done {
                request: assign.request,
                pod: assign.pod.clone(),
                outcome: Outcome::PodLost {
                    detail: detail.to_owned(),
                },
            })
        };
        let Some(pod) = self.pods.get(&assign.pod) else {
            return lost("nothing is known of the pod any more");
        };
        if pod.connection.is_none() {
            let Some(target) = self.target(pod) else {
                return lost("the pod has no address yet");
            };
            self.connect(&assign.pod, target, effects);
        }
        effects.push(Effect::Assign(assign));
        None
    }

    /// Calls a pod at this target from now on.
    fn connect(&mut self, uid: &Uid, target: Target, effects: &mut Vec<Effect>) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.connection = Some(target.clone());
            effects.push(Effect::Connect {
                uid: uid.clone(),
                target,
            });
        }
    }

    /// Returns the preferred target of a pod, if one is known.
    fn target(&self, pod: &PodRecord) -> Option<Target> {
        self.targets(pod).into_iter().next()
    }

    /// Returns the targets at which a pod may be called, the preferred one first.
    fn targets(&self, pod: &PodRecord) -> Vec<Target> {
        let service = self.services.get(pod.slot.as_str());
        pod.targets(self.options.connect, service, &self.options.service_domain)
    }

    /// Handles the appointments that are due, and those of the pool.
    fn tick(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.readiness < Readiness::Ready {
            return;
        }
        // Handlers make appointments for a later time only.
        while self.agenda.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, due)) = self.agenda.pop_first()
        {
            match due {
                Due::Start(uid) => self.check_start(now, &uid, effects),
                Due::Slot(slot) => self.check_slot(&slot, effects),
                Due::Scan => {
                    self.check_slots(now, effects);
                    self.schedule(now + self.options.scan_interval, Due::Scan);
                }
            }
        }
        self.pass(now, Event::Tick, effects);
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.agenda.insert((at, due));
    }

    /// Updates the coordinator's own state for an event that is passed to the pool.
    fn record(&mut self, now: Time, event: &Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Done {
                pod,
                outcome: Outcome::Answered,
                ..
            } => self.reach(now, pod, StartStep::Answered, effects),
            Event::StartFailed { name, .. } => self.forget_attempt(name, effects),
            _ => {}
        }
    }

    fn created(
        &mut self,
        now: Time,
        create: &Create,
        result: CreateResult,
        looked_up: Duration,
        effects: &mut Vec<Effect>,
    ) {
        let name = &create.name;
        match result {
            CreateResult::Created {
                uid,
                resource_version,
            } => {
                let mut start = self.creating.remove(name);
                if let Some(start) = &mut start {
                    start.looked_up(looked_up);
                    effects.push(Effect::StepReached {
                        pod: name.clone(),
                        step: StartStep::Metadata,
                        took: looked_up,
                    });
                }
                let pod = self
                    .pods
                    .entry(uid.clone())
                    .or_insert_with(|| PodRecord::new(name.clone(), create.slot.clone()));
                pod.start = start;
                self.reach(now, &uid, StartStep::Created, effects);
                let early_address = self.tokens.get_mut(name).and_then(|token| {
                    token.pod = Some(uid.clone());
                    token.early_address.take()
                });
                let created = Event::Created {
                    name: name.clone(),
                    attempt: create.attempt,
                    uid: uid.clone(),
                    resource_version: resource_version.into(),
                };
                self.pass(now, created, effects);
                if let Some(address) = early_address {
                    self.listens(now, &uid, address, effects);
                }
            }
            CreateResult::NameTaken(observation) => {
                self.forget_attempt(name, effects);
                self.pod_observed(now, *observation, effects);
            }
            CreateResult::Failed(failure) => {
                self.forget_attempt(name, effects);
                let failed = Event::StartFailed {
                    name: name.clone(),
                    attempt: create.attempt,
                    failure,
                };
                self.pass(now, failed, effects);
            }
        }
    }

    fn forget_attempt(&mut self, name: &PodName, effects: &mut Vec<Effect>) {
        self.tokens.remove(name);
        if self.creating.remove(name).is_some() {
            effects.push(Effect::StartEnded(name.clone()));
        }
    }

    /// Removes the record of a pod that no longer exists.
    fn forget_pod(&mut self, now: Time, uid: &Uid, effects: &mut Vec<Effect>) {
        if let Some(pod) = self.pods.remove(uid) {
            effects.push(Effect::Forget(uid.clone()));
            if pod.start.is_some() {
                effects.push(Effect::StartEnded(pod.name.clone()));
            }
            // That pod will not announce itself any more.
            if let Some(token) = self.tokens.get(&pod.name)
                && token.pod.as_ref() == Some(uid)
            {
                self.tokens.remove(&pod.name);
            }
            self.check_slot_later(now, pod.slot.as_str());
        }
    }

    /// Records a step in the start of a pod, if this process created the pod.
    fn reach(&mut self, now: Time, uid: &Uid, step: StartStep, effects: &mut Vec<Effect>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        // The watch may show the pod before the API server answers the create request.
        let start = match &mut pod.start {
            Some(start) => Some(start),
            None => self.creating.get_mut(&pod.name),
        };
        if let Some(took) = start.and_then(|start| start.reach(step, now)) {
            let pod = pod.name.clone();
            effects.push(Effect::StepReached { pod, step, took });
        }
    }
}
