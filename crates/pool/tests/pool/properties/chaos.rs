//! A cluster with random events, and the invariants that must hold.
//!
//! The model receives every event that the pool receives, keeps simple records of its own, and
//! checks each action against them.

mod happenings;
mod invariants;
mod watch;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use runner_pool::{
    Action, Create, Delete, Event, Function, Limits, PodName, PodPhase, Pool, RequestId, Settings,
    TemplateVersion, Time, Uid,
};

use crate::world::secs;

const TTL: Duration = secs(40);
/// The TTLs that a function may be configured with, including unreasonable ones.
const TTLS: [Duration; 4] = [TTL, secs(20), Duration::ZERO, Duration::from_nanos(5)];
const RETRIES: u32 = 2;
/// Two functions, and the first again after its tag has moved.
const FUNCTIONS: [(&str, u64); 3] = [("a:v1", 1), ("b:v1", 1), ("a:v1", 2)];

pub struct Chaos {
    pool: Pool,
    now: Time,
    actions: Vec<Action>,
    template: u64,
    generation: u64,
    counter: u64,
    functions: Vec<Arc<Function>>,
    requests: BTreeMap<RequestId, Ask>,
    creates: Vec<Create>,
    deletes: Vec<Delete>,
    probes: Vec<(PodName, Uid)>,
    pods: BTreeMap<Uid, Known>,
    draining: bool,
}

/// A request that has not been answered.
struct Ask {
    function: usize,
    deadline: Option<Time>,
    at: Option<Uid>,
    /// Number of assignments to a pod.
    tries: u32,
}

/// A pod in the cluster, and the observations of it sent to the pool.
#[derive(Clone)]
struct Known {
    name: PodName,
    slot: PodName,
    function: usize,
    template: TemplateVersion,
    version: Arc<str>,
    reclaim_after: Time,
    /// Whether the pod answered or the watch showed it ready.
    ready: bool,
    watch_ready: bool,
    /// Whether the pod has lost a call or turned unready since then.
    suspect: bool,
    /// Whether the pod was ever suspect.
    doubted: bool,
    failed: bool,
    deleting: bool,
    /// Time at which the pool requested the deletion, unless a failure was reported since.
    asked: Option<Time>,
}

impl Chaos {
    pub fn new() -> Self {
        let limits = Limits {
            max_queue: 6,
            ready_timeout: secs(20),
            probe_timeout: secs(2),
            max_background_starts: 1,
            max_retries: RETRIES,
            patience: secs(30),
            adopted: Settings {
                ttl: TTL,
                ..Settings::default()
            },
            ..Limits::default()
        };
        let mut chaos = Self {
            pool: Pool::new(limits, "1000"),
            now: Time::from_unix_secs(1_000_000),
            actions: Vec::new(),
            template: 1000,
            generation: 0,
            counter: 0,
            functions: Vec::new(),
            requests: BTreeMap::new(),
            creates: Vec::new(),
            deletes: Vec::new(),
            probes: Vec::new(),
            pods: BTreeMap::new(),
            draining: false,
        };
        chaos.configure(2, 0, TTL);
        chaos
    }

    /// Executes one random event.
    pub fn happen(&mut self, event: u32) {
        let [kind, a, b, c] = event.to_le_bytes().map(usize::from);
        match kind % 64 {
            0..16 => self.request(a, b),
            16..19 => self.cancel(a),
            19..27 => self.finish(a, b % 4 == 0),
            27..35 => self.create(a, b),
            35..38 => self.answer(a, b),
            38..45 => self.observe(a, b),
            45..47 => self.remove(a),
            47..49 => self.foreign(a, b, c),
            49..53 => self.delete(a, b),
            53..55 => self.probe(a, b),
            55 => self.change_template(),
            56 => {
                let ttl = TTLS[c / 2 % TTLS.len()];
                self.configure(1 + a % 3, c as u64 % 2, ttl);
                let warm = self.functions.iter().take(b % 3).cloned().collect();
                self.send(Event::Configured(warm));
            }
            57 => {
                let all: HashSet<_> = self.pods.keys().cloned().collect();
                self.send(Event::Listed(all));
            }
            58 if a % 8 == 0 => {
                self.draining = true;
                self.send(Event::Drain {
                    until: self.now + secs(20),
                });
            }
            _ => self.pass(Duration::from_millis((a % 16 * (a % 16)) as u64 * 100)),
        }
        self.check_rest();
    }

    /// Stops all faults: every request must end, and no pod may remain.
    pub fn calm_down(&mut self) {
        for _ in 0..100 {
            if self.requests.is_empty() {
                break;
            }
            self.cooperate();
            self.check_rest();
            self.pass(secs(5));
        }
        assert!(
            self.requests.is_empty(),
            "some were never answered: {:#?}",
            self.pool
        );
        if self.draining {
            return;
        }
        // Pods of the warm set would stay.
        self.send(Event::Configured(Vec::new()));
        for _ in 0..60 {
            self.cooperate();
            self.pass(secs(10));
        }
        let left = self.pool.snapshot(self.now).functions;
        assert!(left.is_empty(), "after all TTLs there is still {left:#?}");
        assert_eq!(self.pool.next_wakeup(), None);
    }

    fn cooperate(&mut self) {
        for round in 0.. {
            if self.creates.is_empty() && self.deletes.is_empty() {
                break;
            }
            self.create(0, 0);
            self.delete(0, 0);
            assert!(
                round < 100,
                "pods come and go in a circle: {:#?}",
                self.pool
            );
        }
        while !self.probes.is_empty() {
            self.probe(0, 0);
        }
        for (uid, pod) in self.pods.clone() {
            if pod.deleting {
                self.gone(&uid);
            } else if !pod.failed && !pod.watch_ready {
                self.show(&uid, PodPhase::Ready);
            }
        }
        while self.requests.values().any(|ask| ask.at.is_some()) {
            self.finish(0, false);
        }
    }

    fn send(&mut self, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.pool.handle(self.now, event, &mut actions);
        for action in actions.drain(..) {
            self.check(action);
        }
        self.actions = actions;
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut wakeups = 0;
        while let Some(at) = self.pool.next_wakeup().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.send(Event::Tick);
            wakeups += 1;
            assert!(wakeups < 3000, "woken again and again: {:#?}", self.pool);
        }
        self.now = end;
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn version(&mut self) -> Arc<str> {
        self.count().to_string().into()
    }
}

impl Known {
    fn new(name: PodName, slot: PodName, function: usize, template: TemplateVersion) -> Self {
        Self {
            name,
            slot,
            function,
            template,
            version: "0".into(),
            reclaim_after: Time::default(),
            ready: false,
            watch_ready: false,
            suspect: false,
            doubted: false,
            failed: false,
            deleting: false,
            asked: None,
        }
    }
}
