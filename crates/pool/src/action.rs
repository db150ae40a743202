//! What the pool wants done.

use std::{sync::Arc, time::Duration};

use runner_core::EvaluationError;

use crate::{Attempt, Function, PodName, RequestId, TemplateVersion, Time, Uid};

/// Something to do. None of them is waited for; what becomes of it is reported as an event.
#[derive(Clone, Debug)]
pub enum Action {
    /// Create a pod; report `Created`, `StartFailed`, or the `Pod` that has the name already.
    Create(Create),
    /// Delete a pod; report `DeleteFailed`, or let the watch report that it is gone.
    Delete(Delete),
    /// Send a request to a pod; report `Done`. One that was assigned before is taken back: its
    /// earlier pod is gone.
    Assign(Assign),
    /// Answer a request with an error.
    Reject {
        /// Which.
        request: RequestId,
        /// What its caller is told.
        error: EvaluationError,
    },
    /// Write `reclaim-after` annotations, whenever there is time for it; report `ExtendFailed`, or
    /// let the watch report the new value.
    Extend(Vec<Extension>),
    /// Ask a pod whether it still answers; report `Ready` or `ProbeFailed`.
    Probe {
        /// Its name.
        name: PodName,
        /// The pod.
        uid: Uid,
    },
}

/// A pod to create.
#[derive(Clone, Debug)]
pub struct Create {
    /// Name of the pod.
    pub name: PodName,
    /// Name of the slot the pod fills: its label and the name of its service.
    pub slot: PodName,
    /// What its announcement must be bound to.
    pub attempt: Attempt,
    /// What it runs.
    pub function: Arc<Function>,
    /// The template to make it from.
    pub template: TemplateVersion,
    /// Its first `reclaim-after`.
    pub reclaim_after: Time,
}

/// A pod to delete, if it is still what the pool thinks it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Its name.
    pub name: PodName,
    /// Precondition: this pod.
    pub uid: Uid,
    /// Precondition: unchanged since.
    pub resource_version: Arc<str>,
    /// Why, for logs and metrics.
    pub why: Leave,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// It failed, or cannot start.
    Failed,
    /// It was not ready in time.
    TooSlow,
    /// It does not answer.
    Lost,
    /// It was made from an older template.
    OldTemplate,
    /// Its tag points at another digest now.
    OldDigest,
    /// There are more pods than the maximum.
    Surplus,
    /// It was not used for its TTL.
    Idle,
}

/// A request and the pod that is to serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assign {
    /// The request.
    pub request: RequestId,
    /// The pod's name.
    pub name: PodName,
    /// The pod.
    pub pod: Uid,
    /// Where its time went until now.
    pub waited: Waited,
    /// Whether the request was on another pod before.
    pub retry: bool,
}

/// Where a request's time went before it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Behind other requests.
    pub queued: Duration,
    /// While the function had no pod to run on.
    pub starting: Duration,
    /// On a pod that was lost.
    pub lost: Duration,
}

/// A `reclaim-after` annotation to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The pod's name.
    pub name: PodName,
    /// The pod.
    pub uid: Uid,
    /// The new value, in whole seconds.
    pub reclaim_after: Time,
}
