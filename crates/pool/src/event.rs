//! What the pool is told.

use std::{collections::HashSet, sync::Arc};

use runner_core::{EvaluationError, ImageReference};

use crate::{Attempt, Function, PodName, RequestId, Template, TemplateVersion, Time, Uid};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A caller wants a function evaluated.
    Request(Request),
    /// A caller went away. Nothing is answered, and its place is free.
    Cancel(RequestId),
    /// An assigned request is over, as far as that pod is concerned.
    Done {
        /// Which request.
        request: RequestId,
        /// The pod it was assigned to. That a pod was lost which the request has left already is
        /// no news; that such a pod answered all the same ends the request.
        pod: Uid,
        /// How it ended.
        outcome: Outcome,
    },
    /// The API server accepted a pod.
    Created {
        /// The slot.
        name: PodName,
        /// From the action.
        attempt: Attempt,
        /// What the API server calls the pod.
        uid: Uid,
        /// Its first version.
        resource_version: Arc<str>,
    },
    /// A pod could not be created. (A name already taken is no failure: report the pod that has it
    /// as [`Event::Pod`].)
    StartFailed {
        /// The slot.
        name: PodName,
        /// From the action.
        attempt: Attempt,
        /// Why.
        failure: StartFailure,
    },
    /// A pod answers: it announced itself, or was knocked at.
    Ready {
        /// The slot.
        name: PodName,
        /// The pod that answers.
        uid: Uid,
        /// The attempt whose token the pod announced itself with; none: it was knocked at.
        attempt: Option<Attempt>,
    },
    /// A pod did not answer a probe.
    ProbeFailed {
        /// The slot.
        name: PodName,
        /// The pod that was probed.
        uid: Uid,
    },
    /// The watch shows a pod, new or changed, whoever made it.
    Pod(Observed),
    /// The watch shows that a pod is no more.
    PodGone {
        /// Its name.
        name: PodName,
        /// Which of that name.
        uid: Uid,
    },
    /// The watch started over: pods it showed before that are not among these are gone.
    Listed(HashSet<Uid>),
    /// A delete was refused or failed.
    DeleteFailed {
        /// The pod's name.
        name: PodName,
        /// The pod.
        uid: Uid,
        /// Whether a precondition did not hold: somebody changed the pod.
        conflict: bool,
    },
    /// A pod's `reclaim-after` could not be written.
    ExtendFailed {
        /// The pod's name.
        name: PodName,
        /// The pod.
        uid: Uid,
    },
    /// Configuration was loaded: the functions to keep pods ready for, for as long as they are
    /// configured. Those no longer among them are left to their TTL.
    Configured(Vec<Arc<Function>>),
    /// What pods are made from changed to this.
    TemplateChanged(Template),
    /// Time passed: [`Pool::next_wakeup`](crate::Pool::next_wakeup) is due.
    Tick,
    /// The runner shuts down: take no more requests, finish those there are, leave the pods to the
    /// successor.
    Drain {
        /// When requests still waiting are turned away.
        until: Time,
    },
}

/// A request for one evaluation.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name; never used before.
    pub id: RequestId,
    /// What to evaluate.
    pub function: Arc<Function>,
    /// When the caller stops waiting.
    pub deadline: Option<Time>,
}

/// How an assigned request ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod answered, be it with a result or with the function's own failure.
    Answered,
    /// The pod did not answer: the connection failed or broke.
    PodLost {
        /// What the connection reported.
        detail: String,
    },
}

/// Why a pod could not be created.
#[derive(Clone, Debug)]
pub enum StartFailure {
    /// Quota, admission, permission, a template that does not fit: trying again changes nothing.
    Refused(EvaluationError),
    /// Conflict, throttling, a server error, no answer: trying again may help.
    Passing(EvaluationError),
}

/// A pod as the watch shows it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its name.
    pub name: PodName,
    /// Name of the slot the pod fills: its label and the name of its service.
    pub slot: PodName,
    /// What the API server calls it.
    pub uid: Uid,
    /// Its version, for preconditions.
    pub resource_version: Arc<str>,
    /// The image of its function container, pinned to a digest as soon as that is known.
    pub image: Arc<ImageReference>,
    /// The template it was made from.
    pub template: TemplateVersion,
    /// Where it is in its life.
    pub phase: PodPhase,
    /// When it may be reclaimed if nobody uses it until then.
    pub reclaim_after: Option<Time>,
}

/// Where a pod is in its life, as the API server knows it.
#[derive(Clone, Debug)]
pub enum PodPhase {
    /// Not ready, and what it waits for if that is known.
    Starting(Option<Arc<str>>),
    /// Ready.
    Ready,
    /// It will not be ready any more: failed, evicted, finished, or unable to start.
    Failed(PodFailure),
    /// Failed for a reason that does not concern the next pod, which is made differently: requests
    /// go on waiting, and the next pod is started at once.
    FailedAvoidably(PodFailure),
    /// Being deleted.
    Deleting,
}

/// Why a pod failed, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// Such as `ImagePullBackOff`.
    pub reason: Arc<str>,
    /// What Kubernetes says about it, with the last log lines of a crashed container.
    pub message: Arc<str>,
}
