//! The pods of every function, as a pure state machine: events in, actions out.
//!
//! The pool only decides. It has no clock (the time comes with each event), no I/O, and does not
//! depend on gRPC, HTTP or the Kubernetes client. The driver, one task, carries out the [`Action`]s
//! and reports their results as [`Event`]s:
//!
//! ```text
//!  requests ──┐                              ┌─→ create, delete, extend ─→ API server
//!  watch ─────┼─→ Event ─→ Pool ─→ Action ───┼─→ assign, reject ─────────→ callers
//!  outcomes ──┘    ↑ now                     └─→ probe ──────────────────→ pods
//! ```
//!
//! The example plays the driver for one request to a function without pods:
//!
//! ```
//! use std::sync::Arc;
//!
//! use runner_core::{Digest, ImageReference};
//! use runner_pool::{
//!     Action, Event, Function, Limits, Observed, PodPhase, Pool, Request, RequestId, Settings, Time,
//!     Uid,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let image: ImageReference = "example.com/functions/set-labels:v1".parse()?;
//! let digest = Digest::parse(&format!("sha256:{}", "a".repeat(64)))?;
//! let function = Arc::new(Function::new(&image, digest, Settings::default()));
//! let mut pool = Pool::new(Limits::default(), "template-version");
//! let now = Time::from_unix_secs(1_000_000);
//! let mut actions = Vec::new();
//!
//! // A request arrives: the pool wants a pod.
//! let request = Request { id: RequestId(1), function: function.clone(), deadline: None };
//! pool.handle(now, Event::Request(request), &mut actions);
//! let Some(Action::Create(create)) = actions.pop() else { panic!("{actions:?}") };
//!
//! // The watch shows that the pod is ready: the pool assigns the request to it.
//! let uid = Uid::from("uid-1");
//! pool.handle(now, Event::Pod(Observed {
//!     name: create.name.clone(),
//!     slot: create.slot,
//!     uid: uid.clone(),
//!     resource_version: "1".into(),
//!     image: function.image().clone(),
//!     template: create.template,
//!     phase: PodPhase::Ready,
//!     reclaim_after: None,
//! }), &mut actions);
//! let assigned = actions.iter().any(|action| matches!(
//!     action,
//!     Action::Assign(assign) if assign.request == RequestId(1) && assign.pod == uid
//! ));
//! assert!(assigned, "{actions:?}");
//! # Ok(())
//! # }
//! ```
//!
//! # States of a pod
//!
//! ```text
//!            Create                    Ready (health check, watch)
//!  (slot) ──────────→ Creating ──→ Starting ──→ Ready ⇄ Suspect (call lost, turned unready)
//!                        │            │           │        │ probe failed
//!            start failed│    failed, │    failed,│        ↓
//!            or refused  │    too slow│    gone   │   Abandoned (another replica may use it)
//!                        ↓            ↓           ↓        ↓
//!                      forgotten ←── Deleting ←── idle past its TTL, superseded, surplus
//! ```
//!
//! Independently of its state, a pod is *current* or not: a pod of another template gets no
//! requests in any state. A delete carries the uid and the resourceVersion last observed. After a
//! conflict the pool decides again from the next observation, so that a replica never removes a pod
//! that another replica has just used.
//!
//! # States of a request
//!
//! ```text
//!              room on a pod
//!  Request ───────────────────→ assigned ──→ Done
//!     │ no room                  ↑    │ pod lost: again, at the head of the queue
//!     └──────→ queued ───────────┘    └──→ queued, or Reject
//!                └──→ Reject (deadline, queue full, start failed, draining)
//! ```
//!
//! Every request ends exactly once: it is rejected, done, or cancelled by its caller.
//!
//! # State shared with other replicas
//!
//! State that must survive a restart or be visible to other runners is in the cluster: the pods
//! themselves, their names and `reclaim-after`. All other state is local and may be lost. The name
//! of a pod is derived from its slot and the previous pod in that slot, and the API server refuses
//! a name that is taken, so runners that observed the same pods never fill a slot twice. A runner
//! that observed fewer pods may; the surplus pod is then deleted, and all runners choose the same
//! one.

mod action;
mod agenda;
mod backoff;
mod bound;
mod event;
mod fleet;
mod function;
mod ledger;
mod limits;
mod names;
mod pool;
mod slot;
mod snapshot;
mod template;
mod time;

pub use action::{Action, Assign, Create, Delete, Extension, Leave, Waited};
pub use event::{Event, Observed, Outcome, PodFailure, PodPhase, Request, StartFailure};
pub use function::{Function, Settings};
pub use limits::Limits;
pub use names::{Attempt, PodName, RequestId, Uid};
pub use pool::Pool;
pub use slot::{pod_name, slot_name};
pub use snapshot::{Counters, FunctionStatus, PodState, PodStatus, Snapshot};
pub use template::{Template, TemplateVersion};
pub use time::{Anchor, Time};
