//! Actions that the pool asks the driver to carry out.

use std::{sync::Arc, time::Duration};

use runner_core::EvaluationError;

use crate::{Attempt, Function, PodName, RequestId, TemplateVersion, Time, Uid};

/// A task for the driver.
///
/// The pool does not wait for an action; its result is reported as an event.
#[derive(Clone, Debug)]
pub enum Action {
    /// Create a pod; report `Created`, `StartFailed`, or the `Pod` that already has the name.
    Create(Create),
    /// Delete a pod; report `DeleteFailed`, or let the watch report that the pod is gone.
    Delete(Delete),
    /// Send a request to a pod; report `Done`.
    ///
    /// A request that was assigned before is withdrawn from its earlier pod, which is lost.
    Assign(Assign),
    /// Answer a request with an error.
    Reject {
        /// The request to answer.
        request: RequestId,
        /// The error returned to the caller.
        error: EvaluationError,
    },
    /// Write `reclaim-after` annotations at low priority; report `ExtendFailed`, or let the watch
    /// report the new value.
    Extend(Vec<Extension>),
    /// Send a health check to a pod; report `Ready` or `ProbeFailed`.
    Probe {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod.
        uid: Uid,
    },
}

/// A pod to create.
#[derive(Clone, Debug)]
pub struct Create {
    /// Name of the pod.
    pub name: PodName,
    /// Name of the pod's slot: the pod's label and the name of its service.
    pub slot: PodName,
    /// The attempt, for the events `Created` and `StartFailed`.
    pub attempt: Attempt,
    /// The function that the pod runs.
    pub function: Arc<Function>,
    /// The template to make the pod from.
    pub template: TemplateVersion,
    /// The first value of the pod's `reclaim-after`.
    pub reclaim_after: Time,
}

/// A pod to delete, provided that it has not changed since it was last observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Name of the pod.
    pub name: PodName,
    /// Precondition: the uid of the pod.
    pub uid: Uid,
    /// Precondition: the resourceVersion last observed.
    pub resource_version: Arc<str>,
    /// The reason, for logs and metrics.
    pub why: Leave,
}

/// The reason why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// The pod failed or cannot start.
    Failed,
    /// The pod was not ready within the limit.
    TooSlow,
    /// The pod does not answer.
    Lost,
    /// The pod was made from an older template.
    OldTemplate,
    /// The tag of the function now points at another digest.
    OldDigest,
    /// The function has more pods than its maximum.
    Surplus,
    /// The pod was not used for its TTL.
    Idle,
}

/// The assignment of a request to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assign {
    /// The assigned request.
    pub request: RequestId,
    /// Name of the pod.
    pub name: PodName,
    /// Uid of the pod.
    pub pod: Uid,
    /// The time that the request has waited so far, by cause.
    pub waited: Waited,
    /// Whether the request was on another pod before.
    pub retry: bool,
}

/// The time that a request waited before it ran, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Time spent behind other requests.
    pub queued: Duration,
    /// Time during which the function had no ready pod.
    pub starting: Duration,
    /// Time spent on pods that were lost.
    pub lost: Duration,
}

/// A `reclaim-after` annotation to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Name of the pod.
    pub name: PodName,
    /// Uid of the pod.
    pub uid: Uid,
    /// The new value, in whole seconds.
    pub reclaim_after: Time,
}
