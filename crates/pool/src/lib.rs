//! The pods of every function, as a pure state machine: events in, actions out.
//!
//! The pool decides; it does nothing. It has no clock (the time comes with each event), no I/O,
//! and no idea of gRPC, HTTP or the Kubernetes client. Whoever drives it, one task, carries out
//! the [`Action`]s and reports what became of them as [`Event`]s:
//!
//! ```text
//!  requests ──┐                              ┌─→ create, delete, extend ─→ API server
//!  watch ─────┼─→ Event ─→ Pool ─→ Action ───┼─→ assign, reject ─────────→ callers
//!  outcomes ──┘    ↑ now                     └─→ probe ──────────────────→ pods
//! ```
//!
//! # One pod
//!
//! ```text
//!            Create                    Ready (announced, knocked, watched)
//!  (slot) ──────────→ Creating ──→ Starting ──→ Ready ⇄ Suspect (call lost, turned unready)
//!                        │            │           │        │ probe failed
//!            start failed│    failed, │    failed,│        ↓
//!            or refused  │    too slow│    gone   │   Abandoned (another replica may use it)
//!                        ↓            ↓           ↓        ↓
//!                      forgotten ←── Deleting ←── idle past its TTL, superseded, surplus
//! ```
//!
//! Beside its life a pod is *current* or not: a pod of another template gets no work, whatever its
//! life. A delete is asked for with the uid and the resource version last seen; a conflict makes
//! the pool look again at what the watch brings, so replicas never remove what another just used.
//!
//! # One request
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
//! What must survive a restart or be known to other runners is in the cluster: the pods themselves,
//! their names and `reclaim-after`. Everything else is local and may be lost. A pod's name follows
//! from its slot and the last pod there, and the API server refuses a taken name, so runners that
//! saw the same pods never fill a slot twice. A runner that saw less may; the surplus pod is then
//! deleted, and all runners choose the same one.

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
