//! Inputs that the driver reports to the coordinator.

use std::{collections::HashSet, time::Duration};

use runner_cluster::{PodObservation, ServiceObservation};
use runner_pool::{Create, Event, PodName, StartFailure, Template, Uid};

use crate::target::Target;

/// Something that happened outside the coordinator.
#[derive(Debug)]
pub(crate) enum Input {
    /// An event that is passed to the pool unchanged.
    Event(Event),
    /// A watch shows a change.
    Observation(Observation),
    /// An attempt to create a pod has ended.
    Created {
        create: Create,
        result: CreateResult,
        /// Duration of the image's lookup.
        looked_up: Duration,
    },
    /// A pod answered when it was knocked at.
    Knocked(Uid),
    /// A pod was probed.
    Probed {
        name: PodName,
        uid: Uid,
        /// Target at which the pod answered first, if it did.
        answered: Option<Target>,
    },
    /// A pod answers at the target of [`Effect::TryTarget`](super::Effect::TryTarget).
    TargetAnswers { uid: Uid, target: Target },
    /// The next pods are made with another injection than this pod, which its node did not start.
    InjectionGivenUp(Uid),
    /// The time of [`Coordinator::next_wakeup`](super::Coordinator::next_wakeup) has come.
    Tick,
}

/// An observation of the watches.
#[derive(Debug)]
pub(crate) enum Observation {
    /// A pod was created or changed.
    Pod(Box<PodObservation>),
    /// A pod was removed.
    PodGone { name: PodName, uid: Uid },
    /// The watch was restarted; the uids of all existing pods.
    Pods(HashSet<Uid>),
    /// A service was created or changed.
    Service(ServiceObservation),
    /// The service of this name was removed.
    ServiceGone(String),
    /// The watch was restarted; the names of all existing services.
    Services(HashSet<String>),
    /// The templates changed; the error if they cannot be used.
    Template(Result<Template, String>),
}

/// The result of an attempt to create a pod.
#[derive(Debug)]
pub(crate) enum CreateResult {
    /// The API server created the pod.
    Created { uid: Uid, resource_version: String },
    /// The name is taken by this pod.
    NameTaken(Box<PodObservation>),
    /// The pod was not created.
    Failed(StartFailure),
}
