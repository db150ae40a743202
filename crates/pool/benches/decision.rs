//! How long one decision takes with 1,000 functions of 10 pods each.
//!
//! Criterion reports means; the goal is about the slowest in a hundred, so that is measured and
//! printed too, over every event of a mixed load.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use runner_core::{Digest, ImageReference};
use runner_pool::{
    Action, Assign, Event, Function, Limits, Observed, Outcome, PodPhase, Pool, Request, RequestId,
    Settings, TemplateVersion, Time, Uid, slot_name,
};

const FUNCTIONS: usize = 1_000;
const PODS: usize = 10;

struct Load {
    pool: Pool,
    now: Time,
    functions: Vec<Arc<Function>>,
    actions: Vec<Action>,
    running: Vec<Assign>,
    next: u64,
}

impl Load {
    fn new() -> Self {
        let settings = Settings {
            max_pods: PODS,
            ..Settings::default()
        };
        let digest = Digest::parse(&format!("sha256:{:064x}", 1)).expect("a good digest");
        let functions: Vec<_> = (0..FUNCTIONS)
            .map(|n| {
                let image: ImageReference = format!("ghcr.io/example/fn-{n}:v1")
                    .parse()
                    .expect("a good image");
                Arc::new(Function::new(&image, digest.clone(), settings))
            })
            .collect();
        let mut pool = Pool::new(Limits::default(), "1");
        let now = Time::from_unix_secs(1_000_000);
        let mut actions = Vec::new();
        for function in &functions {
            for slot in 1..=PODS {
                let name = slot_name(function.image(), slot);
                let seen = Observed {
                    uid: Uid::from(format!("uid-{name}")),
                    name,
                    resource_version: "1".into(),
                    image: Arc::clone(function.image()),
                    template: TemplateVersion::parse("1"),
                    phase: PodPhase::Ready,
                    reclaim_after: Some(now + Duration::from_secs(1800)),
                };
                pool.handle(now, Event::Pod(seen), &mut actions);
            }
        }
        assert!(actions.is_empty());
        Self {
            pool,
            now,
            functions,
            actions,
            running: Vec::new(),
            next: 0,
        }
    }

    /// One event; how long the pool took to decide.
    fn step(&mut self) -> Duration {
        self.next += 1;
        self.now = self.now + Duration::from_micros(50);
        // A fixed walk over functions that looks random to caches.
        let draw = self.next.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let event = if self.running.len() >= 8_000 {
            let at = usize::try_from(draw).unwrap_or(0) % self.running.len();
            let assign = self.running.swap_remove(at);
            Event::Done {
                request: assign.request,
                pod: assign.pod,
                outcome: Outcome::Answered,
            }
        } else if self.pool.next_wakeup().is_some_and(|at| at <= self.now) {
            Event::Tick
        } else {
            let at = usize::try_from(draw).unwrap_or(0) % FUNCTIONS;
            Event::Request(Request {
                id: RequestId(self.next),
                function: Arc::clone(&self.functions[at]),
                deadline: Some(self.now + Duration::from_secs(60)),
            })
        };
        let start = Instant::now();
        self.pool.handle(self.now, event, &mut self.actions);
        let took = start.elapsed();
        for action in self.actions.drain(..) {
            if let Action::Assign(assign) = action {
                self.running.push(assign);
            }
        }
        took
    }
}

fn decision(criterion: &mut Criterion) {
    let mut load = Load::new();
    criterion.bench_function("pool decision, 1000 functions x 10 pods", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| black_box(load.step())).sum());
    });
    let mut took: Vec<_> = (0..1_000_000).map(|_| load.step()).collect();
    took.sort_unstable();
    let at = |share: f64| took[(took.len() as f64 * share) as usize];
    println!(
        "p50 {:?}, p99 {:?}, p99.9 {:?}",
        at(0.50),
        at(0.99),
        at(0.999)
    );
    assert!(
        at(0.99) <= Duration::from_micros(10),
        "a decision must take at most 10 µs (p99)"
    );
}

criterion_group!(benches, decision);
criterion_main!(benches);
