//! Events that the driver reports to the pool.

use std::{collections::HashSet, sync::Arc};

use runner_core::{EvaluationError, ImageReference};

use crate::{Attempt, Function, PodName, RequestId, Template, TemplateVersion, Time, Uid};

/// Something that happened outside the pool.
#[derive(Clone, Debug)]
pub enum Event {
    /// A caller requests an evaluation.
    Request(Request),
    /// A caller has gone away.
    ///
    /// Nothing is answered, and the request's place in the queue or on its pod becomes free.
    Cancel(RequestId),
    /// An assigned request has ended on its pod.
    Done {
        /// The request that ended.
        request: RequestId,
        /// The pod that the request was assigned to.
        ///
        /// The loss of a pod that the request has already left is ignored; an answer from such a
        /// pod still ends the request.
        pod: Uid,
        /// The result of the assignment.
        outcome: Outcome,
    },
    /// The API server accepted a pod.
    Created {
        /// Name of the pod.
        name: PodName,
        /// The attempt from the [`Create`](crate::Create) action.
        attempt: Attempt,
        /// Uid of the new pod.
        uid: Uid,
        /// The first resourceVersion of the pod.
        resource_version: Arc<str>,
    },
    /// A pod could not be created.
    ///
    /// A name that is already taken is not a failure: the pod that has it is reported as
    /// [`Event::Pod`].
    StartFailed {
        /// Name of the pod.
        name: PodName,
        /// The attempt from the [`Create`](crate::Create) action.
        attempt: Attempt,
        /// The cause of the failure.
        failure: StartFailure,
    },
    /// A pod answered a health check.
    Ready {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod that answered.
        uid: Uid,
    },
    /// A pod did not answer a probe.
    ProbeFailed {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod that was probed.
        uid: Uid,
    },
    /// The watch shows a new or changed pod of any replica.
    Pod(Observed),
    /// The watch shows that a pod no longer exists.
    PodGone {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod, as the name may have been used again.
        uid: Uid,
    },
    /// The watch started over with these pods; earlier observed pods that are missing are gone.
    Listed(HashSet<Uid>),
    /// A delete was refused or failed.
    DeleteFailed {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod.
        uid: Uid,
        /// Whether a precondition did not hold because the pod was changed meanwhile.
        conflict: bool,
    },
    /// A pod's `reclaim-after` could not be written.
    ExtendFailed {
        /// Name of the pod.
        name: PodName,
        /// Uid of the pod.
        uid: Uid,
    },
    /// Configuration was loaded with these functions in the warm set.
    ///
    /// Pods of functions that are no longer in the warm set expire after their TTL.
    Configured(Vec<Arc<Function>>),
    /// The template that pods are made from has changed.
    TemplateChanged(Template),
    /// The time of [`Pool::next_wakeup`](crate::Pool::next_wakeup) has come.
    Tick,
    /// The runner shuts down.
    ///
    /// The pool accepts no new requests, finishes the present ones, and leaves the pods to the next
    /// runner.
    Drain {
        /// The time at which requests that still wait are rejected.
        until: Time,
    },
}

/// A request for one evaluation.
#[derive(Clone, Debug)]
pub struct Request {
    /// Identifier of the request, never used before.
    pub id: RequestId,
    /// The function to evaluate.
    pub function: Arc<Function>,
    /// The time at which the caller stops waiting.
    pub deadline: Option<Time>,
}

/// The result of an assignment.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod answered, with a result or with a failure of the function itself.
    Answered,
    /// The pod did not answer: the connection failed or broke.
    PodLost {
        /// The error that the connection reported.
        detail: String,
    },
}

/// The reason why a pod could not be created.
#[derive(Clone, Debug)]
pub enum StartFailure {
    /// The API server refused the pod (quota, admission, permission, an unsuitable template), and a
    /// retry does not help.
    Refused(EvaluationError),
    /// The failure is transient, so a retry may help: conflict, throttling, a server error, or no
    /// answer.
    Passing(EvaluationError),
}

/// An observation of a pod: its state as the watch showed it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Name of the pod.
    pub name: PodName,
    /// Name of the pod's slot: the pod's label and the name of its service.
    pub slot: PodName,
    /// Uid of the pod.
    pub uid: Uid,
    /// The resourceVersion of the pod, for preconditions.
    pub resource_version: Arc<str>,
    /// The image of the function container, pinned to a digest as soon as the digest is known.
    pub image: Arc<ImageReference>,
    /// The template that the pod was made from.
    pub template: TemplateVersion,
    /// Phase of the pod.
    pub phase: PodPhase,
    /// The time after which an unused pod may be removed.
    pub reclaim_after: Option<Time>,
}

/// Phase of a pod, as the API server reports it.
#[derive(Clone, Debug)]
pub enum PodPhase {
    /// The pod is not ready; the text says what it waits for, if that is known.
    Starting(Option<Arc<str>>),
    /// The pod is ready.
    Ready,
    /// The pod will not become ready again: it failed, was evicted, finished, or cannot start.
    Failed(PodFailure),
    /// The pod failed for a reason that does not affect the next pod, which is made differently.
    ///
    /// Requests continue to wait, and the next pod is started at once.
    FailedAvoidably(PodFailure),
    /// The pod is being deleted.
    Deleting,
}

/// The reason why a pod failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// Short reason, such as `ImagePullBackOff`.
    pub reason: Arc<str>,
    /// Detailed message, with the last log lines of a crashed container.
    pub message: Arc<str>,
}
