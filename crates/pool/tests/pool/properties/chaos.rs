//! A cluster where anything may happen, and what must hold all the same.
//!
//! The model is told everything the pool is told, keeps its own simple books, and checks each
//! action against them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use runner_core::{EvaluationError, Reason};
use runner_pool::{
    Action, Assign, Attempt, Create, Delete, Event, Function, Leave, Limits, Observed, Outcome,
    PodName, PodPhase, PodState, Pool, Request, RequestId, Settings, StartFailure, TemplateVersion,
    Time, Uid, slot_name,
};

use crate::world::{digest, failure, image, secs};

const TTL: Duration = secs(40);
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

/// A request without an answer.
struct Ask {
    function: usize,
    deadline: Option<Time>,
    at: Option<Uid>,
}

/// A pod in the cluster, and what the pool was told about it.
#[derive(Clone)]
struct Known {
    name: PodName,
    function: usize,
    template: TemplateVersion,
    version: Arc<str>,
    attempt: Option<Attempt>,
    reclaim_after: Time,
    /// It answered, or the watch showed it ready.
    ready: bool,
    watch_ready: bool,
    /// It lost a call or turned unready since.
    suspect: bool,
    /// It ever was.
    doubted: bool,
    failed: bool,
    deleting: bool,
    /// The pool asked for its deletion and has not heard that it failed.
    asked: Option<Time>,
}

impl Chaos {
    pub fn new() -> Self {
        let limits = Limits {
            max_queue: 6,
            ready_timeout: secs(20),
            probe_timeout: secs(2),
            max_background_starts: 1,
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
        chaos.configure(2, 0);
        chaos
    }

    /// Lets one thing happen.
    pub fn happen(&mut self, event: u32) {
        let [kind, a, b, c] = event.to_le_bytes().map(usize::from);
        match kind % 64 {
            0..16 => self.request(a, b),
            16..19 => self.cancel(a),
            19..27 => self.finish(a, b % 4 == 0),
            27..35 => self.create(a, b),
            35..38 => self.announce(a, b),
            38..45 => self.observe(a, b),
            45..47 => self.remove(a),
            47..49 => self.foreign(a, b, c),
            49..53 => self.delete(a, b),
            53..55 => self.probe(a, b),
            55 => self.change_template(),
            56 => {
                self.configure(1 + a % 3, c as u64 % 2);
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

    /// From here on everything works. Whatever is open must come to its end, and nothing stays.
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
            assert!(wakeups < 1000, "woken again and again: {:#?}", self.pool);
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

    // What may happen.

    fn request(&mut self, which: usize, deadline: usize) {
        let id = RequestId(self.count());
        let function = which % FUNCTIONS.len();
        let deadline = (!deadline.is_multiple_of(4)).then(|| self.now + secs(deadline as u64 % 32));
        self.requests.insert(
            id,
            Ask {
                function,
                deadline,
                at: None,
            },
        );
        let function = Arc::clone(&self.functions[function]);
        self.send(Event::Request(Request {
            id,
            function,
            deadline,
        }));
    }

    fn cancel(&mut self, which: usize) {
        if let Some(&id) = nth(self.requests.keys(), which) {
            self.requests.remove(&id);
            self.send(Event::Cancel(id));
        }
    }

    fn finish(&mut self, which: usize, lost: bool) {
        let running = self
            .requests
            .iter()
            .filter_map(|(id, ask)| Some((*id, ask.at.clone()?)));
        let Some((request, pod)) = nth(running, which) else {
            return;
        };
        let outcome = if lost {
            self.requests.get_mut(&request).expect("it runs").at = None;
            if let Some(known) = self.pods.get_mut(&pod) {
                known.suspect = true;
                known.doubted = true;
            }
            Outcome::PodLost {
                detail: "connection reset".to_owned(),
            }
        } else {
            self.requests.remove(&request);
            Outcome::Answered
        };
        self.send(Event::Done {
            request,
            pod,
            outcome,
        });
    }

    fn create(&mut self, which: usize, how: usize) {
        if self.creates.is_empty() {
            return;
        }
        let create = self.creates.remove(which % self.creates.len());
        let (name, attempt) = (create.name.clone(), create.attempt);
        if let Some((uid, _)) = self.pods.iter().find(|(_, pod)| pod.name == name) {
            // The name is taken: the pod that has it is reported.
            let uid = uid.clone();
            let phase = self.phase(&uid);
            self.show(&uid, phase);
            return;
        }
        let fail = |reason| EvaluationError::new(reason, "no");
        match how % 8 {
            1 => {
                let failure = StartFailure::Refused(fail(Reason::PodStartFailed));
                return self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
            }
            2 => {
                let failure = StartFailure::Passing(fail(Reason::KubernetesUnreachable));
                return self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
            }
            _ => {}
        }
        let uid = Uid::from(format!("{}", self.count()));
        let resource_version = self.version();
        let function = self.index(&create.function);
        let known = Known {
            version: Arc::clone(&resource_version),
            attempt: Some(attempt),
            reclaim_after: create.reclaim_after,
            ..Known::new(name.clone(), function, create.template)
        };
        self.pods.insert(uid.clone(), known);
        match how % 8 {
            // The answer is lost on the way, the pod is there all the same.
            3 => {
                let failure = StartFailure::Passing(fail(Reason::KubernetesUnreachable));
                self.send(Event::StartFailed {
                    name,
                    attempt,
                    failure,
                });
                self.show(&uid, PodPhase::Starting(None));
            }
            // The watch is faster than the answer.
            4 => {
                self.show(&uid, PodPhase::Starting(None));
                self.send(Event::Created {
                    name,
                    attempt,
                    uid,
                    resource_version,
                });
            }
            5 => self.send(Event::Created {
                name,
                attempt,
                uid,
                resource_version,
            }),
            _ => {
                let created = Event::Created {
                    name,
                    attempt,
                    uid: uid.clone(),
                    resource_version,
                };
                self.send(created);
                self.announce_pod(&uid, attempt);
            }
        }
    }

    /// A pod announces itself, with its own token or another's.
    fn announce(&mut self, which: usize, token: usize) {
        let Some(uid) = nth(self.pods.keys(), which).cloned() else {
            return;
        };
        match self.pods[&uid].attempt {
            Some(attempt) if !token.is_multiple_of(4) => self.announce_pod(&uid, attempt),
            _ => {
                let name = self.pods[&uid].name.clone();
                // One that nobody was given.
                let attempt = Attempt(1_000_000 + token as u64);
                if self.pods[&uid].attempt != Some(attempt) {
                    self.send(Event::Ready {
                        name,
                        uid,
                        attempt: Some(attempt),
                    });
                }
            }
        }
    }

    fn announce_pod(&mut self, uid: &Uid, attempt: Attempt) {
        let pod = self.pods.get_mut(uid).expect("a pod that is there");
        pod.ready = true;
        let name = pod.name.clone();
        self.send(Event::Ready {
            name,
            uid: uid.clone(),
            attempt: Some(attempt),
        });
    }

    fn observe(&mut self, which: usize, how: usize) {
        let Some(uid) = nth(self.pods.keys(), which).cloned() else {
            return;
        };
        let phase = match how % 8 {
            _ if self.pods[&uid].deleting => PodPhase::Deleting,
            _ if self.pods[&uid].failed => self.phase(&uid),
            0 => PodPhase::Deleting,
            1 => PodPhase::Failed(failure("Evicted", "low on memory")),
            2 | 3 => PodPhase::Starting(Some("pulling".into())),
            _ => PodPhase::Ready,
        };
        if how % 16 > 12 {
            // Another replica uses it.
            let pod = self.pods.get_mut(&uid).expect("a pod that is there");
            pod.reclaim_after = (self.now + TTL).to_next_second();
        }
        self.show(&uid, phase);
    }

    fn remove(&mut self, which: usize) {
        if let Some(uid) = nth(self.pods.keys(), which).cloned() {
            self.gone(&uid);
        }
    }

    /// Another replica starts a pod.
    fn foreign(&mut self, function: usize, slot: usize, template: usize) {
        let function = function % FUNCTIONS.len();
        let name = slot_name(self.functions[function].image(), 1 + slot % 3);
        if self.pods.values().any(|pod| pod.name == name) {
            return;
        }
        // Whoever meant to create it learns that the name is taken.
        self.creates.retain(|create| create.name != name);
        let template = match template % 4 {
            0 => TemplateVersion::parse(&(self.template - 1).to_string()),
            1 => TemplateVersion::parse(&(self.template + 1).to_string()),
            _ => self.current(function),
        };
        let uid = Uid::from(format!("{}", self.count()));
        let reclaim_after = (self.now + TTL).to_next_second();
        let known = Known {
            reclaim_after,
            ..Known::new(name, function, template)
        };
        self.pods.insert(uid.clone(), known);
        self.show(
            &uid,
            if slot.is_multiple_of(2) {
                PodPhase::Ready
            } else {
                PodPhase::Starting(None)
            },
        );
    }

    fn delete(&mut self, which: usize, how: usize) {
        if self.deletes.is_empty() {
            return;
        }
        let delete = self.deletes.remove(which % self.deletes.len());
        let (name, uid) = (delete.name, delete.uid);
        let Some(pod) = self.pods.get_mut(&uid) else {
            return;
        };
        let conflict = pod.version != delete.resource_version;
        if conflict || how % 4 == 1 {
            pod.asked = None;
            self.send(Event::DeleteFailed {
                name,
                uid: uid.clone(),
                conflict,
            });
            if conflict {
                let phase = self.phase(&uid);
                self.show_again(&uid, phase);
            }
        } else {
            self.show(&uid, PodPhase::Deleting);
            if how.is_multiple_of(2) {
                self.gone(&uid);
            }
        }
    }

    fn probe(&mut self, which: usize, how: usize) {
        if self.probes.is_empty() {
            return;
        }
        let (name, uid) = self.probes.remove(which % self.probes.len());
        if how % 2 == 1 {
            return self.send(Event::ProbeFailed { name, uid });
        }
        if let Some(pod) = self
            .pods
            .get_mut(&uid)
            .filter(|pod| !pod.failed && !pod.deleting)
        {
            pod.suspect = false;
            pod.ready = true;
            self.send(Event::Ready {
                name,
                uid,
                attempt: None,
            });
        }
    }

    fn change_template(&mut self) {
        self.template += 1;
        self.send(Event::TemplateChanged(self.template.to_string().into()));
    }

    fn configure(&mut self, max_pods: usize, overrides: u64) {
        self.generation += 1;
        let settings = Settings {
            max_pods,
            max_waitlist: 2,
            max_in_flight: 3,
            ttl: TTL,
            overrides,
            generation: self.generation,
        };
        self.functions = FUNCTIONS
            .iter()
            .map(|(name, n)| Arc::new(Function::new(&image(name), digest(*n), settings)))
            .collect();
        // The pool learns of settings with requests or configuration, so it is told at once.
        if self.generation > 1 {
            let all = self.functions.clone();
            self.send(Event::Configured(all));
        }
    }

    // What the pool is told about a pod.

    /// A pod changed, and the watch shows it.
    fn show(&mut self, uid: &Uid, phase: PodPhase) {
        let version = self.version();
        self.pods.get_mut(uid).expect("a pod that is there").version = version;
        self.show_again(uid, phase);
    }

    /// The watch shows a pod as it is.
    fn show_again(&mut self, uid: &Uid, phase: PodPhase) {
        let pod = self.pods.get_mut(uid).expect("a pod that is there");
        let version = Arc::clone(&pod.version);
        match &phase {
            PodPhase::Ready => {
                if !std::mem::replace(&mut pod.watch_ready, true) {
                    pod.ready = true;
                    pod.suspect = false;
                }
            }
            PodPhase::Starting(_) => {
                pod.suspect |= std::mem::take(&mut pod.watch_ready);
                pod.doubted |= pod.suspect;
            }
            PodPhase::Failed(_) => pod.failed = true,
            PodPhase::Deleting => pod.deleting = true,
        }
        let failed = pod.failed;
        let seen = Observed {
            name: pod.name.clone(),
            uid: uid.clone(),
            resource_version: version,
            image: Arc::clone(self.functions[pod.function].image()),
            template: pod.template.clone(),
            phase,
            reclaim_after: Some(pod.reclaim_after),
        };
        if failed {
            self.give_back(uid);
        }
        self.send(Event::Pod(seen));
    }

    fn gone(&mut self, uid: &Uid) {
        let pod = self.pods.remove(uid).expect("a pod that is there");
        self.give_back(uid);
        self.send(Event::PodGone {
            name: pod.name,
            uid: uid.clone(),
        });
    }

    /// Requests on a dead pod wait again, as far as the model is concerned.
    fn give_back(&mut self, uid: &Uid) {
        for ask in self
            .requests
            .values_mut()
            .filter(|ask| ask.at.as_ref() == Some(uid))
        {
            ask.at = None;
        }
    }

    fn phase(&self, uid: &Uid) -> PodPhase {
        let pod = &self.pods[uid];
        match () {
            () if pod.deleting => PodPhase::Deleting,
            () if pod.failed => PodPhase::Failed(failure("Evicted", "low on memory")),
            () if pod.watch_ready => PodPhase::Ready,
            () => PodPhase::Starting(None),
        }
    }

    fn current(&self, function: usize) -> TemplateVersion {
        let overrides = self.functions[function].settings().overrides;
        TemplateVersion::new(self.template.to_string().into(), overrides)
    }

    fn index(&self, function: &Function) -> usize {
        let same = |known: &Arc<Function>| known.image() == function.image();
        self.functions.iter().position(same).expect("one of ours")
    }

    // What must hold.

    fn check(&mut self, action: Action) {
        match action {
            Action::Assign(assign) => self.check_assign(&assign),
            Action::Reject { request, .. } => {
                assert!(
                    self.requests.remove(&request).is_some(),
                    "{request:?} was over"
                );
            }
            Action::Create(create) => self.check_create(create),
            Action::Delete(delete) => self.check_delete(delete),
            Action::Probe { name, uid } => self.probes.push((name, uid)),
            Action::Extend(extensions) => {
                for extension in extensions {
                    let value = extension.reclaim_after;
                    assert!(value > self.now && value == value.to_next_second());
                    let version = self.version();
                    if let Some(pod) = self.pods.get_mut(&extension.uid) {
                        // Written now; the watch shows it some time later, or never.
                        pod.version = version;
                        pod.reclaim_after = pod.reclaim_after.max(extension.reclaim_after);
                    }
                }
            }
        }
    }

    fn check_assign(&mut self, assign: &Assign) {
        let running = self
            .requests
            .values()
            .filter(|ask| ask.at.as_ref() == Some(&assign.pod));
        let load = running.count();
        let ask = self
            .requests
            .get_mut(&assign.request)
            .expect("an open request");
        let pod = self.pods.get(&assign.pod).expect("a pod that is there");
        // A delete nobody reports about is forgotten after a while.
        let asked = pod.asked.is_some_and(|asked| self.now < asked + secs(20));
        assert_eq!(pod.function, ask.function, "another function's pod");
        assert!(pod.ready && !pod.suspect, "a pod that is not ready");
        assert!(
            !pod.failed && !pod.deleting && !asked,
            "a pod on its way out"
        );
        assert!(
            ask.deadline.is_none_or(|deadline| deadline > self.now),
            "an expired request"
        );
        if let Some(before) = ask.at.replace(assign.pod.clone()) {
            assert!(self.pods[&before].doubted, "taken from a pod that works");
        }
        let (function, template) = (pod.function, pod.template.clone());
        assert_eq!(
            template,
            self.current(function),
            "a pod of another template"
        );
        assert!(
            load < self.functions[function].settings().max_in_flight,
            "more than it holds"
        );
    }

    fn check_create(&mut self, create: Create) {
        let function = self.index(&create.function);
        let current = self.current(function);
        assert_eq!(create.template, current);
        let functions = self.pool.snapshot(self.now).functions;
        let pods: Vec<_> = functions
            .iter()
            .flat_map(|function| &function.pods)
            .collect();
        let named = |name: &PodName| pods.iter().filter(|pod| pod.name == *name).count();
        assert_eq!(named(&create.name), 1, "the name is taken");
        // A call that takes longer than a pod may is no longer waited for.
        self.creates
            .retain(|other| other.name != create.name && named(&other.name) > 0);
        let abandoned = self.abandoned();
        let live = self.pods.iter().filter(|(uid, pod)| {
            pod.function == function
                && pod.template == current
                && !pod.failed
                && !pod.deleting
                && !abandoned.contains(*uid)
        });
        // A call for a name that is taken by now will be refused.
        let taken = |name: &PodName| self.pods.values().any(|pod| pod.name == *name);
        let asked = self.creates.iter().filter(|other| {
            self.index(&other.function) == function
                && other.template == current
                && !taken(&other.name)
        });
        let most = self.functions[function].settings().max_pods;
        let (live, asked) = (live.count(), asked.count());
        assert!(
            live + asked < most,
            "more pods than the maximum: {:#?}",
            self.pool
        );
        self.creates.push(create);
    }

    fn abandoned(&self) -> HashSet<Uid> {
        let functions = self.pool.snapshot(self.now).functions;
        let pods = functions.into_iter().flat_map(|function| function.pods);
        // One that was given up, or that the pool was not told of (an answer that got lost).
        let known: BTreeMap<_, _> = pods
            .filter_map(|pod| Some((pod.uid.clone()?, pod.state)))
            .collect();
        self.pods
            .keys()
            .filter(|uid| {
                known
                    .get(*uid)
                    .is_none_or(|state| matches!(state, PodState::Abandoned | PodState::Failed))
            })
            .cloned()
            .collect()
    }

    fn check_delete(&mut self, delete: Delete) {
        let busy = self
            .requests
            .values()
            .any(|ask| ask.at.as_ref() == Some(&delete.uid));
        let pod = self.pods.get_mut(&delete.uid).expect("a pod that is there");
        assert!(!pod.deleting, "it goes already");
        // A pod that does not answer has lost what it had.
        assert!(!busy || pod.doubted, "a busy pod");
        if delete.why == Leave::Idle {
            assert!(pod.reclaim_after <= self.now || pod.version != delete.resource_version);
        }
        if delete.why == Leave::Failed {
            assert!(pod.failed);
        }
        pod.asked = Some(self.now);
        self.deletes.push(delete);
    }

    /// What must hold between events.
    fn check_rest(&mut self) {
        let snapshot = self.pool.snapshot(self.now);
        assert_eq!(self.pool.outstanding(), self.requests.len());
        let mut held = 0;
        for function in &snapshot.functions {
            held += function.queued + function.pods.iter().map(|pod| pod.in_flight).sum::<usize>();
            if function.queued == 0 {
                continue;
            }
            let idle = function
                .pods
                .iter()
                .find(|pod| pod.state == PodState::Ready && pod.current && pod.in_flight < 2);
            assert!(idle.is_none(), "requests wait beside {idle:?}");
            let hope = !function.pods.is_empty() || function.start_failure.is_some();
            assert!(
                hope && self.pool.next_wakeup().is_some(),
                "requests wait for nothing"
            );
        }
        assert_eq!(held, self.requests.len(), "places and requests differ");
        // What a pod had is taken back when it is given up.
        let pods = snapshot
            .functions
            .into_iter()
            .flat_map(|function| function.pods);
        for pod in pods.filter(|pod| pod.state == PodState::Abandoned) {
            if let Some(uid) = pod.uid {
                self.give_back(&uid);
            }
        }
    }
}

impl Known {
    fn new(name: PodName, function: usize, template: TemplateVersion) -> Self {
        Self {
            name,
            function,
            template,
            version: "0".into(),
            attempt: None,
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

fn nth<T>(items: impl Iterator<Item = T>, which: usize) -> Option<T> {
    let mut items: Vec<T> = items.collect();
    let at = which.checked_rem(items.len())?;
    Some(items.swap_remove(at))
}
