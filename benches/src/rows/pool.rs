//! Measures the duration of the pool's decisions (99th percentile) with 1,000 functions of 10 pods
//! each, over all events of a mixed load.

use std::{sync::Arc, time::Duration, time::Instant};

use anyhow::Result;
use runner_core::{Digest, ImageReference};
use runner_pool::{
    Action, Assign, Event, Function, Limits, Observed, Outcome, PodPhase, Pool, Request, RequestId,
    Settings, TemplateVersion, Time, Uid, slot_name,
};

use crate::{
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
};

const FUNCTIONS: usize = 1_000;
const PODS: usize = 10;

/// Number of concurrent evaluations; most pods have one.
const RUNNING: usize = 8_000;

const DECISIONS: usize = 1_000_000;

const GOAL: Duration = Duration::from_micros(10);

struct Load {
    pool: Pool,
    now: Time,
    functions: Vec<Arc<Function>>,
    actions: Vec<Action>,
    running: Vec<Assign>,
    next: u64,
}

pub(super) fn measure(table: &mut Table) -> Result<()> {
    let mut load = Load::new()?;
    let mut took = Samples::default();
    for _ in 0..DECISIONS {
        took.push(load.step());
    }
    table.push(Row {
        name: format!("pool decision, {FUNCTIONS} × {PODS} pods, p99"),
        floor: None,
        ours: Quantity::Time(took.percentile(99)),
        goal: Goal::Within(GOAL),
    });
    Ok(())
}

// === impl Load ===

impl Load {
    fn new() -> Result<Self> {
        let settings = Settings {
            max_pods: PODS,
            ..Settings::default()
        };
        let digest = format!("sha256:{:064x}", 1);
        let digest = Digest::parse(&digest).map_err(anyhow::Error::msg)?;
        let mut functions = Vec::new();
        for number in 0..FUNCTIONS {
            let image: ImageReference = format!("ghcr.io/example/fn-{number}:v1").parse()?;
            functions.push(Arc::new(Function::new(&image, digest.clone(), settings)));
        }
        let mut pool = Pool::new(Limits::default(), "1");
        let now = Time::from_unix_secs(1_000_000);
        let mut actions = Vec::new();
        for function in &functions {
            for slot in 1..=PODS {
                let name = slot_name(function.image(), slot);
                let seen = Observed {
                    uid: Uid::from(format!("uid-{name}")),
                    slot: name.clone(),
                    name,
                    resource_version: "1".into(),
                    image: Arc::clone(function.image()),
                    template: TemplateVersion::new(&"1".into(), 0),
                    phase: PodPhase::Ready,
                    reclaim_after: Some(now + Duration::from_secs(1800)),
                };
                pool.handle(now, Event::Pod(seen), &mut actions);
            }
        }
        Ok(Self {
            pool,
            now,
            functions,
            actions,
            running: Vec::new(),
            next: 0,
        })
    }

    /// Passes one event to the pool and returns the duration of its decision.
    fn step(&mut self) -> Duration {
        self.next += 1;
        self.now = self.now + Duration::from_micros(50);
        // A fixed sequence of functions that looks random to caches.
        let draw = usize::try_from(self.next.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20);
        let draw = draw.unwrap_or_default();
        let event = if self.running.len() >= RUNNING {
            let assign = self.running.swap_remove(draw % self.running.len());
            Event::Done {
                request: assign.request,
                pod: assign.pod,
                outcome: Outcome::Answered,
            }
        } else if self.pool.next_wakeup().is_some_and(|at| at <= self.now) {
            Event::Tick
        } else {
            Event::Request(Request {
                id: RequestId(self.next),
                function: Arc::clone(&self.functions[draw % FUNCTIONS]),
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
