//! A pool with a manual clock, and functions to drive them.

use std::{sync::Arc, time::Duration};

use runner_core::{Digest, EvaluationError, ImageReference};
use runner_pool::{
    Action, Assign, Create, Delete, Event, Extension, Function, Limits, Observed, Outcome,
    PodFailure, PodName, PodPhase, Pool, Request, RequestId, Settings, TemplateVersion, Time, Uid,
};

pub const TEMPLATE: &str = "100";

pub struct World {
    pub pool: Pool,
    pub now: Time,
    requests: u64,
    versions: u64,
}

/// The actions that resulted from one or more events.
#[derive(Debug, Default)]
pub struct Acts(pub Vec<Action>);

impl World {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        let pool = Pool::new(limits, TEMPLATE);
        Self {
            pool,
            now: Time::from_unix_secs(1_000_000),
            requests: 0,
            versions: 0,
        }
    }

    pub fn send(&mut self, event: Event) -> Acts {
        let mut actions = Vec::new();
        self.pool.handle(self.now, event, &mut actions);
        Acts(actions)
    }

    /// Advances the clock and sends a tick whenever the pool has requested one.
    pub fn pass(&mut self, duration: Duration) -> Acts {
        let end = self.now + duration;
        let mut acts = Acts::default();
        let mut wakeups = 0;
        while let Some(at) = self.pool.next_wakeup().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            acts.0.extend(self.send(Event::Tick).0);
            wakeups += 1;
            assert!(wakeups < 10_000, "woken again and again: {:#?}", self.pool);
        }
        self.now = end;
        acts
    }

    pub fn request(&mut self, function: &Arc<Function>) -> (RequestId, Acts) {
        self.request_by(function, None)
    }

    pub fn request_within(
        &mut self,
        function: &Arc<Function>,
        limit: Duration,
    ) -> (RequestId, Acts) {
        self.request_by(function, Some(self.now + limit))
    }

    fn request_by(
        &mut self,
        function: &Arc<Function>,
        deadline: Option<Time>,
    ) -> (RequestId, Acts) {
        self.requests += 1;
        let id = RequestId(self.requests);
        let request = Request {
            id,
            function: Arc::clone(function),
            deadline,
        };
        (id, self.send(Event::Request(request)))
    }

    /// Reports that the API server accepted a pod.
    pub fn accept(&mut self, create: &Create) -> Acts {
        let resource_version = self.version();
        let (name, attempt, uid) = (create.name.clone(), create.attempt, uid_of(create));
        self.send(Event::Created {
            name,
            attempt,
            uid,
            resource_version,
        })
    }

    /// Reports that the API server accepted a pod and that the pod answered a health check.
    pub fn start(&mut self, create: &Create) -> Acts {
        self.accept(create);
        let (name, uid) = (create.name.clone(), uid_of(create));
        self.send(Event::Ready { name, uid })
    }

    /// Starts a pod of the function with a request that is answered.
    pub fn warm(&mut self, function: &Arc<Function>) -> Create {
        let (request, acts) = self.request(function);
        let create = acts.create();
        let assign = self.start(&create).assign();
        assert_eq!(assign.request, request);
        self.answer(&assign);
        create
    }

    pub fn answer(&mut self, assign: &Assign) -> Acts {
        let (request, pod) = (assign.request, assign.pod.clone());
        self.send(Event::Done {
            request,
            pod,
            outcome: Outcome::Answered,
        })
    }

    pub fn lose(&mut self, assign: &Assign) -> Acts {
        let outcome = Outcome::PodLost {
            detail: "connection reset".to_owned(),
        };
        self.send(Event::Done {
            request: assign.request,
            pod: assign.pod.clone(),
            outcome,
        })
    }

    pub fn observe(&mut self, create: &Create, phase: PodPhase) -> Acts {
        let seen = self.seen(create, phase);
        self.send(Event::Pod(seen))
    }

    pub fn seen(&mut self, create: &Create, phase: PodPhase) -> Observed {
        Observed {
            name: create.name.clone(),
            slot: create.slot.clone(),
            uid: uid_of(create),
            resource_version: self.version(),
            image: Arc::clone(create.function.image()),
            template: create.template.clone(),
            phase,
            reclaim_after: Some(create.reclaim_after),
        }
    }

    /// Returns an observation of another replica's pod in the given slot.
    pub fn foreign(&mut self, function: &Arc<Function>, slot: usize, phase: PodPhase) -> Observed {
        let slot = runner_pool::slot_name(function.image(), slot);
        Observed {
            uid: Uid::from(format!("foreign-{slot}")),
            name: runner_pool::pod_name(&slot, None),
            slot,
            resource_version: self.version(),
            image: Arc::clone(function.image()),
            template: TemplateVersion::new(&TEMPLATE.into(), 0),
            phase,
            reclaim_after: Some((self.now + function.settings().ttl).to_next_second()),
        }
    }

    pub fn gone(&mut self, create: &Create) -> Acts {
        self.send(Event::PodGone {
            name: create.name.clone(),
            uid: uid_of(create),
        })
    }

    pub fn version(&mut self) -> Arc<str> {
        self.versions += 1;
        self.versions.to_string().into()
    }
}

impl Acts {
    pub fn creates(&self) -> Vec<Create> {
        self.pick(|action| match action {
            Action::Create(create) => Some(create.clone()),
            _ => None,
        })
    }

    pub fn assigns(&self) -> Vec<Assign> {
        self.pick(|action| match action {
            Action::Assign(assign) => Some(assign.clone()),
            _ => None,
        })
    }

    pub fn deletes(&self) -> Vec<Delete> {
        self.pick(|action| match action {
            Action::Delete(delete) => Some(delete.clone()),
            _ => None,
        })
    }

    pub fn rejects(&self) -> Vec<(RequestId, EvaluationError)> {
        self.pick(|action| match action {
            Action::Reject { request, error } => Some((*request, error.clone())),
            _ => None,
        })
    }

    pub fn extensions(&self) -> Vec<Extension> {
        self.0
            .iter()
            .flat_map(|action| match action {
                Action::Extend(extensions) => extensions.clone(),
                _ => Vec::new(),
            })
            .collect()
    }

    pub fn probes(&self) -> Vec<PodName> {
        self.pick(|action| match action {
            Action::Probe { name, .. } => Some(name.clone()),
            _ => None,
        })
    }

    pub fn create(&self) -> Create {
        one(self.creates(), self)
    }

    pub fn assign(&self) -> Assign {
        one(self.assigns(), self)
    }

    pub fn delete(&self) -> Delete {
        one(self.deletes(), self)
    }

    pub fn reject(&self) -> (RequestId, EvaluationError) {
        one(self.rejects(), self)
    }

    pub fn none(&self) {
        assert!(self.0.is_empty(), "nothing was expected: {self:#?}");
    }

    fn pick<T>(&self, which: impl Fn(&Action) -> Option<T>) -> Vec<T> {
        self.0.iter().filter_map(which).collect()
    }
}

fn one<T: std::fmt::Debug>(mut of: Vec<T>, acts: &Acts) -> T {
    assert_eq!(of.len(), 1, "one was expected: {acts:#?}");
    of.remove(0)
}

pub fn uid_of(create: &Create) -> Uid {
    Uid::from(format!("uid-{}", create.attempt.0))
}

pub fn image(name: &str) -> ImageReference {
    format!("ghcr.io/example/{name}")
        .parse()
        .expect("a good image")
}

pub fn digest(n: u64) -> Digest {
    Digest::parse(&format!("sha256:{n:08x}{:056x}", 0)).expect("a good digest")
}

/// Returns a function with at most `max_pods` pods of `max_waitlist` requests each.
pub fn function(name: &str, max_pods: usize, max_waitlist: usize) -> Arc<Function> {
    let settings = Settings {
        max_pods,
        max_waitlist,
        max_in_flight: max_waitlist,
        ..Settings::default()
    };
    with_settings(name, settings)
}

pub fn with_settings(name: &str, settings: Settings) -> Arc<Function> {
    Arc::new(Function::new(&image(name), digest(1), settings))
}

pub fn failure(reason: &str, message: &str) -> PodFailure {
    PodFailure {
        reason: reason.into(),
        message: message.into(),
    }
}

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
