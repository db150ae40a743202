//! Three pools over one cluster of 1,000 functions and 10,000 pods, in virtual time, with faults.
//!
//! The cluster keeps pods with resourceVersions and refuses writes whose preconditions do not hold.
//! Every replica sees the cluster through a watch of its own that lags. All randomness comes from
//! one fixed seed.

mod cluster;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use runner_core::{EvaluationError, Reason};
use runner_pool::{
    Action, Assign, Event, Function, Limits, Outcome, Pool, Request, RequestId, Settings,
    StartFailure, Time, Uid,
};

use crate::world::{secs, with_settings};
use cluster::{Cluster, Refusal};

const FUNCTIONS: usize = 1_000;
const MAX_PODS: usize = 10;
const REPLICAS: usize = 3;
const REQUESTS: u64 = 60_000;

struct Simulation {
    now: Time,
    cluster: Cluster,
    replicas: Vec<Replica>,
    functions: Vec<Arc<Function>>,
    coming: BinaryHeap<Reverse<(Time, u64)>>,
    events: HashMap<u64, (usize, Coming)>,
    requests: HashMap<RequestId, Held>,
    sequence: u64,
    seed: u64,
    answered: u64,
    lost: u64,
    conflicts: u64,
    most_pods: usize,
}

struct Replica {
    pool: Pool,
    up: bool,
    wake: Option<Time>,
}

/// A request that has not been answered.
struct Held {
    replica: usize,
    at: Option<Uid>,
    retry: bool,
}

/// A future event of the simulation.
enum Coming {
    Tell(Event),
    Finish(Assign),
    Wake,
    Arrival,
    /// A pod becomes ready in the cluster, visible to every replica.
    Ready(Uid),
}

impl Simulation {
    fn new() -> Self {
        let settings = Settings {
            max_pods: MAX_PODS,
            max_waitlist: 1,
            max_in_flight: 2,
            ttl: secs(300),
            ..Settings::default()
        };
        let functions = (0..FUNCTIONS)
            .map(|n| with_settings(&format!("fn-{n}:v1"), settings))
            .collect();
        let limits = Limits {
            adopted: settings,
            max_queue: 10_000,
            ..Limits::default()
        };
        let replicas = (0..REPLICAS)
            .map(|_| Replica {
                pool: Pool::new(limits.clone(), "1"),
                up: true,
                wake: None,
            })
            .collect();
        Self {
            now: Time::from_unix_secs(1_000_000),
            cluster: Cluster::default(),
            replicas,
            functions,
            coming: BinaryHeap::new(),
            events: HashMap::new(),
            requests: HashMap::new(),
            sequence: 0,
            seed: 0x5EED,
            answered: 0,
            lost: 0,
            conflicts: 0,
            most_pods: 0,
        }
    }

    /// Returns a pseudo-random number below `limit`, the same in every run.
    fn draw(&mut self, limit: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % limit
    }

    fn after(&mut self, delay: Duration, replica: usize, coming: Coming) {
        self.sequence += 1;
        self.coming.push(Reverse((self.now + delay, self.sequence)));
        self.events.insert(self.sequence, (replica, coming));
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.draw(to - from))
    }

    /// Runs until no event is left or the time `until` is reached.
    fn run(&mut self, until: Time) {
        while let Some(&Reverse((at, number))) = self.coming.peek() {
            if at > until {
                break;
            }
            self.coming.pop();
            self.now = at;
            let Some((replica, coming)) = self.events.remove(&number) else {
                continue;
            };
            let up = self.replicas[replica].up;
            match coming {
                Coming::Ready(uid) => {
                    self.cluster.ready(&uid);
                    self.spread();
                }
                Coming::Arrival => self.arrive(if up {
                    replica
                } else {
                    (replica + 1) % REPLICAS
                }),
                _ if !up => {}
                Coming::Tell(event) => self.tell(replica, event),
                Coming::Finish(assign) => self.finish(replica, &assign),
                Coming::Wake => {
                    self.replicas[replica].wake = None;
                    self.tell(replica, Event::Tick);
                }
            }
        }
        self.now = until;
    }

    fn tell(&mut self, replica: usize, event: Event) {
        let mut actions = Vec::new();
        self.replicas[replica]
            .pool
            .handle(self.now, event, &mut actions);
        for action in actions {
            self.carry_out(replica, action);
        }
        let known = &mut self.replicas[replica];
        let soon = self.now + Duration::from_millis(10);
        if let Some(at) = known.pool.next_wakeup().map(|at| at.max(soon))
            && known.wake.is_none_or(|wake| at < wake)
        {
            known.wake = Some(at);
            self.after(at.since(self.now), replica, Coming::Wake);
        }
        self.spread();
    }

    /// Sends the changes of the cluster to every replica, in order, but with a delay.
    fn spread(&mut self) {
        for event in self.cluster.take_changes() {
            for replica in 0..REPLICAS {
                let lag = Duration::from_millis(5 + 15 * replica as u64);
                self.after(lag, replica, Coming::Tell(event.clone()));
            }
        }
    }

    fn arrive(&mut self, replica: usize) {
        self.sequence += 1;
        let id = RequestId(self.sequence);
        let which = usize::try_from(self.draw(FUNCTIONS as u64)).expect("a small number");
        let function = Arc::clone(&self.functions[which]);
        self.requests.insert(
            id,
            Held {
                replica,
                at: None,
                retry: false,
            },
        );
        let deadline = Some(self.now + secs(600));
        self.tell(
            replica,
            Event::Request(Request {
                id,
                function,
                deadline,
            }),
        );
    }

    fn finish(&mut self, replica: usize, assign: &Assign) {
        let (request, pod) = (assign.request, assign.pod.clone());
        if self
            .requests
            .get(&request)
            .is_none_or(|held| held.at.as_ref() != Some(&pod))
        {
            return;
        }
        let outcome = if self.cluster.runs(&pod) {
            self.requests.remove(&request);
            self.answered += 1;
            Outcome::Answered
        } else {
            Outcome::PodLost {
                detail: "connection reset".to_owned(),
            }
        };
        self.tell(
            replica,
            Event::Done {
                request,
                pod,
                outcome,
            },
        );
    }

    fn carry_out(&mut self, replica: usize, action: Action) {
        match action {
            Action::Create(create) => {
                let delay = self.millis(5, 20);
                let (name, attempt) = (create.name.clone(), create.attempt);
                if self.draw(50) == 0 {
                    let error = EvaluationError::new(Reason::KubernetesUnreachable, "timed out");
                    let failure = StartFailure::Passing(error);
                    let told = Event::StartFailed {
                        name,
                        attempt,
                        failure,
                    };
                    return self.after(delay, replica, Coming::Tell(told));
                }
                let told = match self.cluster.create(&create) {
                    Ok((uid, resource_version)) => {
                        let ready = self.millis(600, 1200);
                        let answered = Event::Ready {
                            name: name.clone(),
                            uid: uid.clone(),
                        };
                        self.after(ready, replica, Coming::Tell(answered));
                        // The kubelet reports readiness later than the pod answers a health check.
                        self.after(ready + secs(1), replica, Coming::Ready(uid.clone()));
                        Event::Created {
                            name,
                            attempt,
                            uid,
                            resource_version,
                        }
                    }
                    Err(existing) => Event::Pod(*existing),
                };
                self.after(delay, replica, Coming::Tell(told));
                self.most_pods = self.most_pods.max(self.cluster.len());
            }
            Action::Delete(delete) => {
                let delay = self.millis(5, 20);
                let (name, uid) = (delete.name.clone(), delete.uid.clone());
                let used = self
                    .requests
                    .values()
                    .any(|held| held.at.as_ref() == Some(&uid));
                match self.cluster.delete(&delete) {
                    Ok(()) => assert!(!used, "{name} was deleted while in use: {:?}", delete.why),
                    Err(Refusal::Conflict) => {
                        self.conflicts += 1;
                        let told = Event::DeleteFailed {
                            name,
                            uid,
                            conflict: true,
                        };
                        self.after(delay, replica, Coming::Tell(told));
                    }
                    Err(Refusal::NotFound) => {}
                }
            }
            Action::Assign(assign) => {
                let held = self
                    .requests
                    .get_mut(&assign.request)
                    .expect("an open request");
                held.at = Some(assign.pod.clone());
                held.retry = assign.retry;
                self.lost += u64::from(assign.retry);
                let takes = self.millis(20_000, 40_000);
                self.after(takes, replica, Coming::Finish(assign));
            }
            Action::Reject { request, error } => panic!("{request:?} was rejected: {error}"),
            Action::Extend(extensions) => {
                for extension in extensions {
                    self.cluster.extend(&extension);
                }
            }
            Action::Probe { name, uid } => {
                let told = if self.cluster.runs(&uid) {
                    Event::Ready { name, uid }
                } else {
                    Event::ProbeFailed { name, uid }
                };
                let delay = self.millis(1, 10);
                self.after(delay, replica, Coming::Tell(told));
            }
        }
    }

    /// Stops a replica, whose state is lost; its callers repeat their requests at another replica.
    fn kill(&mut self, replica: usize) {
        self.replicas[replica].up = false;
        let orphans = self
            .requests
            .iter()
            .filter(|(_, held)| held.replica == replica);
        let mut orphans: Vec<_> = orphans.map(|(id, _)| *id).collect();
        orphans.sort_unstable();
        for request in orphans {
            self.requests.remove(&request);
            self.after(secs(1), (replica + 1) % REPLICAS, Coming::Arrival);
        }
    }

    /// Returns the pods that run a retried request.
    fn retried_on(&self) -> HashSet<Uid> {
        let retried = self.requests.values().filter(|held| held.retry);
        retried.filter_map(|held| held.at.clone()).collect()
    }
}

#[test]
fn three_replicas_lose_nothing_in_a_cluster_with_faults() {
    let mut simulation = Simulation::new();
    let start = simulation.now;
    for n in 0..REQUESTS {
        let replica = usize::try_from(n).expect("a small number") % REPLICAS;
        let delay = simulation.millis(0, 60_000);
        simulation.after(delay, replica, Coming::Arrival);
    }
    for second in 1..=60 {
        simulation.run(start + secs(second));
        // Node failures: every second a few pods vanish during their evaluations. Pods with a
        // retried request are spared, so that each request loses at most one pod.
        let spared = simulation.retried_on();
        let mut hit = HashSet::new();
        for _ in 0..5 {
            let draw = simulation.draw(u64::MAX);
            simulation.cluster.kill_one(draw, &spared, &mut hit);
        }
        simulation.spread();
        if second == 30 {
            simulation.kill(2);
        }
        simulation.cluster.check(MAX_PODS + REPLICAS - 1);
    }
    simulation.run(start + secs(400));
    assert_eq!(simulation.requests.len(), 0, "every request was answered");
    assert_eq!(simulation.answered, REQUESTS);
    assert!(
        simulation.lost > 50,
        "faults were felt: {}",
        simulation.lost
    );
    assert!(
        simulation.most_pods >= 9_000,
        "{} pods at most",
        simulation.most_pods
    );

    // No more requests: the remaining replicas delete all pods without harming each other.
    for _ in 0..200 {
        let until = simulation.now + secs(5);
        for replica in 0..REPLICAS - 1 {
            simulation.after(Duration::ZERO, replica, Coming::Wake);
        }
        simulation.run(until);
    }
    assert_eq!(simulation.cluster.len(), 0, "pods were left behind");
    for replica in simulation.replicas.iter().filter(|replica| replica.up) {
        assert!(replica.pool.snapshot(simulation.now).functions.is_empty());
    }
}
