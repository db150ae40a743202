//! A coordinator with a manual clock, and a cluster that shows what a test says.

use std::{collections::HashSet, net::IpAddr, sync::Arc, time::Duration};

use runner_cluster::{Injection, PodObservation, ServiceObservation};
use runner_core::{Digest, ImageReference};
use runner_pool::{
    Assign, Create, Event, Function, Limits, Observed, Outcome, PodFailure, PodPhase, Request,
    RequestId, Settings, Time, Uid,
};

use crate::{
    coordinator::{
        AnnouncementOutcome, Coordinator, CoordinatorOptions, CreateResult, Effect, Input,
        Observation,
    },
    target::{Connect, Target},
};

pub const UNSCHEDULABLE_TIMEOUT: Duration = Duration::from_secs(30);
pub const ADDRESS_TIMEOUT: Duration = Duration::from_secs(45);
pub const SCAN_INTERVAL: Duration = Duration::from_secs(20);
pub const POD_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 7));
pub const SERVICE_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 19, 0, 1));

pub struct FakeCluster {
    pub coordinator: Coordinator,
    pub now: Time,
    pub function: Arc<Function>,
    requests: u64,
    versions: u64,
}

pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns the uid that the API server gives to a pod.
pub fn uid_of(create: &Create) -> Uid {
    Uid::from(format!("uid-{}-{}", create.name, create.attempt.0))
}

pub fn pod_target() -> Target {
    Target {
        address: POD_ADDRESS,
        authority: None,
    }
}

pub fn service_target(create: &Create) -> Target {
    Target {
        address: SERVICE_ADDRESS,
        authority: Some(format!("http://{}.fns.svc.example.org:9446", create.slot)),
    }
}

pub fn service_of(create: &Create) -> ServiceObservation {
    service_named(create.slot.as_str())
}

pub fn service_named(name: &str) -> ServiceObservation {
    ServiceObservation {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        cluster_ip: Some(SERVICE_ADDRESS),
    }
}

pub fn unschedulable() -> PodFailure {
    PodFailure {
        reason: "Unschedulable".into(),
        message: "0/3 nodes are available".into(),
    }
}

// === impl FakeCluster ===

impl FakeCluster {
    /// Returns a coordinator of a known cluster without pods.
    pub fn new(connect: Connect) -> Self {
        let mut cluster = Self::unlisted(connect);
        cluster.observe(Observation::Template(Ok("100".into())));
        cluster.observe(Observation::Pods(HashSet::new()));
        cluster.observe(Observation::Services(HashSet::new()));
        cluster
    }

    /// Returns a coordinator that has no observation of the cluster yet.
    pub fn unlisted(connect: Connect) -> Self {
        let mut secrets = 0;
        let image: ImageReference = "ghcr.io/x/fn:v1".parse().expect("an image");
        let digest = Digest::parse(&format!("sha256:{:064x}", 7)).expect("a digest");
        Self {
            coordinator: Coordinator::new(CoordinatorOptions {
                limits: Limits::default(),
                connect,
                service_domain: "fns.svc.example.org".to_owned(),
                unschedulable_timeout: UNSCHEDULABLE_TIMEOUT,
                scan_interval: SCAN_INTERVAL,
                new_secret: Box::new(move || {
                    secrets += 1;
                    Some(format!("secret-{secrets}"))
                }),
            }),
            now: Time::from_unix_secs(1_000_000),
            function: Arc::new(Function::new(&image, digest, Settings::default())),
            requests: 0,
            versions: 0,
        }
    }

    pub fn input(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.coordinator.handle(self.now, input, &mut effects);
        effects
    }

    pub fn observe(&mut self, observation: Observation) -> Vec<Effect> {
        self.input(Input::Observation(observation))
    }

    /// Advances the clock and sends a tick whenever the coordinator has requested one.
    pub fn pass(&mut self, duration: Duration) -> Vec<Effect> {
        let end = self.now + duration;
        let mut effects = Vec::new();
        let mut wakeups = 0;
        while let Some(at) = self.coordinator.next_wakeup().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            effects.extend(self.input(Input::Tick));
            wakeups += 1;
            assert!(wakeups < 10_000, "woken again and again");
        }
        self.now = end;
        effects
    }

    pub fn request(&mut self) -> (RequestId, Vec<Effect>) {
        self.requests += 1;
        let id = RequestId(self.requests);
        let request = Event::Request(Request {
            id,
            function: Arc::clone(&self.function),
            deadline: Some(self.now + seconds(600)),
        });
        (id, self.input(Input::Event(request)))
    }

    /// Requests a function without pods. Returns the pod to create and the secret of its token.
    pub fn request_pod(&mut self) -> (Create, String) {
        let (_, effects) = self.request();
        created_in(&effects).expect("a pod is created")
    }

    /// Reports that the API server created a pod.
    pub fn accept(&mut self, create: &Create) -> Vec<Effect> {
        self.input(Input::Created {
            create: create.clone(),
            result: CreateResult::Created {
                uid: uid_of(create),
                resource_version: "1".to_owned(),
            },
            looked_up: Duration::ZERO,
        })
    }

    pub fn announce(
        &mut self,
        create: &Create,
        secret: &str,
    ) -> (AnnouncementOutcome, Vec<Effect>) {
        let mut effects = Vec::new();
        let (now, name) = (self.now, &create.name);
        let coordinator = &mut self.coordinator;
        let outcome = coordinator.announced(now, name, secret, POD_ADDRESS, &mut effects);
        (outcome, effects)
    }

    /// Shows a pod on a node, with an address.
    pub fn show(&mut self, create: &Create, phase: PodPhase) -> Vec<Effect> {
        self.show_with(create, phase, |pod| {
            pod.scheduled = true;
            pod.address = Some(POD_ADDRESS);
        })
    }

    /// Shows a pod without node and address, except for what `change` sets.
    pub fn show_with(
        &mut self,
        create: &Create,
        phase: PodPhase,
        change: impl FnOnce(&mut PodObservation),
    ) -> Vec<Effect> {
        let mut pod = self.observation(create, phase);
        change(&mut pod);
        self.observe(Observation::Pod(Box::new(pod)))
    }

    pub fn observation(&mut self, create: &Create, phase: PodPhase) -> PodObservation {
        self.versions += 1;
        PodObservation {
            observed: Observed {
                name: create.name.clone(),
                slot: create.slot.clone(),
                uid: uid_of(create),
                resource_version: self.versions.to_string().into(),
                image: Arc::clone(create.function.image()),
                template: create.template.clone(),
                phase,
                reclaim_after: Some(create.reclaim_after),
            },
            address: None,
            unschedulable: None,
            scheduled: false,
            injection: Injection::Image,
        }
    }

    /// Starts a pod that answers its first request, with its service.
    pub fn ready_pod(&mut self) -> Create {
        let (create, _) = self.request_pod();
        self.accept(&create);
        self.observe(Observation::Service(service_of(&create)));
        self.show(&create, PodPhase::Starting(None));
        let effects = self.input(Input::Knocked(uid_of(&create)));
        let assign = assigned_in(&effects).expect("the request is assigned");
        self.answer(&assign);
        create
    }

    pub fn answer(&mut self, assign: &Assign) -> Vec<Effect> {
        self.input(Input::Event(Event::Done {
            request: assign.request,
            pod: assign.pod.clone(),
            outcome: Outcome::Answered,
        }))
    }

    pub fn lose(&mut self, assign: &Assign) -> Vec<Effect> {
        self.input(Input::Event(Event::Done {
            request: assign.request,
            pod: assign.pod.clone(),
            outcome: Outcome::PodLost {
                detail: "connection reset".to_owned(),
            },
        }))
    }

    pub fn gone(&mut self, create: &Create) -> Vec<Effect> {
        let (name, uid) = (create.name.clone(), uid_of(create));
        self.observe(Observation::PodGone { name, uid })
    }
}

pub fn created_in(effects: &[Effect]) -> Option<(Create, String)> {
    effects.iter().find_map(|effect| match effect {
        Effect::CreatePod { create, secret } => {
            Some((create.clone(), secret.clone().expect("a secret")))
        }
        _ => None,
    })
}

pub fn assigned_in(effects: &[Effect]) -> Option<Assign> {
    effects.iter().find_map(|effect| match effect {
        Effect::Assign(assign) => Some(assign.clone()),
        _ => None,
    })
}

pub fn deleted_in(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::DeletePod { .. }))
}

pub fn connected_in(effects: &[Effect]) -> Option<Target> {
    effects.iter().find_map(|effect| match effect {
        Effect::Connect { target, .. } => Some(target.clone()),
        _ => None,
    })
}

pub fn knocks_in(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Knock(_)))
}

pub fn tried_in(effects: &[Effect]) -> Option<Target> {
    effects.iter().find_map(|effect| match effect {
        Effect::TryTarget { target, .. } => Some(target.clone()),
        _ => None,
    })
}

pub fn services_created_in(effects: &[Effect]) -> Vec<String> {
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::CreateService(slot) => Some(slot.clone()),
        _ => None,
    });
    names.collect()
}

pub fn services_deleted_in(effects: &[Effect]) -> Vec<String> {
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::DeleteService(service) => Some(service.name.clone()),
        _ => None,
    });
    names.collect()
}

pub fn rejections_in(effects: &[Effect]) -> Vec<String> {
    let errors = effects.iter().filter_map(|effect| match effect {
        Effect::Reject { error, .. } => Some(error.message().to_owned()),
        _ => None,
    });
    errors.collect()
}
