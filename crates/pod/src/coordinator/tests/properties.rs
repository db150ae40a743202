//! Random sequences of inputs: no panic, no effect for an unknown pod, one end of every request.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use runner_pool::{Create, Event, PodPhase, RequestId, Uid};

use super::fake_cluster::*;
use crate::{
    coordinator::{CreateResult, Effect, Input, Observation},
    target::Connect,
};

/// A cluster that is driven at random, and the state that its effects must agree with.
struct Chaos {
    cluster: FakeCluster,
    creates: Vec<(Create, String)>,
    /// Pods that the coordinator may know.
    known: HashSet<Uid>,
    connected: HashSet<Uid>,
    /// Open requests and the pods that they are assigned to.
    open: BTreeMap<RequestId, Option<Uid>>,
}

impl Chaos {
    fn new(connect: Connect) -> Self {
        Self {
            cluster: FakeCluster::new(connect),
            creates: Vec::new(),
            known: HashSet::new(),
            connected: HashSet::new(),
            open: BTreeMap::new(),
        }
    }

    fn step(&mut self, kind: u8, which: usize, how: u8) {
        let create = match self.creates.len() {
            0 => None,
            count => Some(self.creates[which % count].clone()),
        };
        let effects = match (kind % 12, create) {
            (0, _) => {
                let (id, effects) = self.cluster.request();
                self.open.insert(id, None);
                effects
            }
            (1, Some((create, _))) => {
                self.known.insert(uid_of(&create));
                self.cluster.accept(&create)
            }
            (2, Some((create, _))) => {
                self.known.insert(uid_of(&create));
                let phase = match how % 4 {
                    0 => PodPhase::Starting(None),
                    1 => PodPhase::Failed(unschedulable()),
                    _ => PodPhase::Ready,
                };
                self.cluster.show(&create, phase)
            }
            (3, Some((create, _))) => {
                self.known.insert(uid_of(&create));
                self.cluster
                    .show_with(&create, PodPhase::Starting(None), |pod| {
                        pod.scheduled = how.is_multiple_of(2);
                        pod.unschedulable = (how % 2 == 1).then(unschedulable);
                    })
            }
            (4, Some((create, secret))) => self.cluster.announce(&create, &secret).1,
            (5, Some((create, _))) => self.cluster.input(Input::Knocked(uid_of(&create))),
            (6, Some((create, _))) => self.cluster.gone(&create),
            (7, Some((create, _))) => match how % 2 {
                0 => self
                    .cluster
                    .observe(Observation::Service(service_of(&create))),
                _ => {
                    let name = create.slot.to_string();
                    self.cluster.observe(Observation::ServiceGone(name))
                }
            },
            (8, Some((create, _))) => {
                let targets = [Some(pod_target()), Some(service_target(&create)), None];
                let answered = targets[usize::from(how) % 3].clone();
                let (name, uid) = (create.name.clone(), uid_of(&create));
                self.cluster.input(Input::Probed {
                    name,
                    uid,
                    answered,
                })
            }
            (9, Some((create, _))) => {
                let (uid, target) = (uid_of(&create), service_target(&create));
                match how % 3 {
                    0 => self.cluster.input(Input::TargetAnswers { uid, target }),
                    1 => self.cluster.input(Input::InjectionGivenUp(uid)),
                    _ => self.cluster.input(Input::Created {
                        create,
                        result: CreateResult::Failed(runner_pool::StartFailure::Passing(
                            runner_core::EvaluationError::new(
                                runner_core::Reason::KubernetesUnreachable,
                                "timed out",
                            ),
                        )),
                        looked_up: seconds(0),
                    }),
                }
            }
            (10, _) => {
                let request = self.open.iter().nth(which % self.open.len().max(1));
                match request.map(|(id, pod)| (*id, pod.clone())) {
                    Some((request, Some(pod))) if how.is_multiple_of(2) => {
                        self.open.remove(&request);
                        let outcome = runner_pool::Outcome::Answered;
                        self.cluster.input(Input::Event(Event::Done {
                            request,
                            pod,
                            outcome,
                        }))
                    }
                    Some((request, None)) if how.is_multiple_of(2) => {
                        self.open.remove(&request);
                        self.cluster.input(Input::Event(Event::Cancel(request)))
                    }
                    Some((request, Some(pod))) => {
                        let outcome = runner_pool::Outcome::PodLost {
                            detail: "reset".to_owned(),
                        };
                        self.cluster.input(Input::Event(Event::Done {
                            request,
                            pod,
                            outcome,
                        }))
                    }
                    _ => Vec::new(),
                }
            }
            (11, _) => self.cluster.pass(seconds(u64::from(how))),
            _ => Vec::new(),
        };
        for effect in effects {
            self.check(effect);
        }
    }

    fn check(&mut self, effect: Effect) {
        match effect {
            Effect::CreatePod { create, secret } => {
                self.creates.push((create, secret.expect("a secret")));
            }
            Effect::Assign(assign) => {
                let open = self.open.get_mut(&assign.request);
                *open.expect("an open request") = Some(assign.pod.clone());
                assert!(self.connected.contains(&assign.pod), "not connected");
            }
            Effect::Reject { request, .. } => {
                assert!(self.open.remove(&request).is_some(), "ended twice");
            }
            Effect::Connect { uid, .. } => {
                assert!(self.known.contains(&uid), "{uid}");
                self.connected.insert(uid);
            }
            Effect::Knock(uid) => assert!(self.connected.contains(&uid), "{uid}"),
            Effect::Probe { uid, targets, .. } => {
                assert!(self.known.contains(&uid), "{uid}");
                assert!(!targets.is_empty());
            }
            Effect::TryTarget { uid, .. } | Effect::GiveUpInjection { uid, .. } => {
                assert!(self.known.contains(&uid), "{uid}");
            }
            Effect::Disconnect(uid) => assert!(self.connected.remove(&uid), "{uid}"),
            Effect::Forget(uid) => {
                self.connected.remove(&uid);
                assert!(self.known.remove(&uid), "{uid}");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn effects_concern_known_pods_and_every_request_ends_once(
        connect in prop_oneof![Just(Connect::Auto), Just(Connect::Service), Just(Connect::Pod)],
        steps in prop::collection::vec((any::<u8>(), any::<usize>(), any::<u8>()), 1..120),
    ) {
        let mut chaos = Chaos::new(connect);
        for (kind, which, how) in steps {
            chaos.step(kind, which, how);
        }
        // Every open request has a deadline, which the pool enforces while it is queued.
        let effects = chaos.cluster.pass(seconds(3600));
        for effect in effects {
            chaos.check(effect);
        }
        for (request, pod) in &chaos.open {
            prop_assert!(pod.is_some(), "{request:?} was neither assigned nor rejected");
        }
    }
}
