//! Effects that the coordinator asks the driver to carry out.

use std::time::Duration;

use runner_cluster::{Injection, ServiceObservation};
use runner_core::EvaluationError;
use runner_pool::{Assign, Create, Delete, Extension, PodName, RequestId, Uid};

use super::{Readiness, StartStep};
use crate::target::Target;

/// A task for the driver.
///
/// The coordinator does not wait for an effect; its result is reported as an input.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Create a pod and its service; report `Created`, or the pool's event `StartFailed`.
    CreatePod {
        create: Create,
        /// Secret of the announcement token, if there is one.
        secret: Option<String>,
    },
    /// Delete a pod and then the service, if any; report the pool's event `PodGone` or
    /// `DeleteFailed`.
    DeletePod {
        delete: Delete,
        /// The service that is unused once the pod is gone.
        service: Option<ServiceObservation>,
    },
    /// Write `reclaim-after` annotations; report the pool's event `ExtendFailed`.
    ExtendPods(Vec<Extension>),
    /// Send a request to a pod over its connection; report the pool's event `Done`.
    Assign(Assign),
    /// Answer a request with an error.
    Reject {
        request: RequestId,
        error: EvaluationError,
    },
    /// Check the health of a pod over new connections to all targets; report `Probed`.
    Probe {
        name: PodName,
        uid: Uid,
        targets: Vec<Target>,
    },
    /// Call a pod at this target from now on.
    Connect { uid: Uid, target: Target },
    /// Drop the connection to a pod. Calls in progress are not affected.
    Disconnect(Uid),
    /// Repeat health checks over the pod's connection until it answers; report `Knocked`.
    Knock(Uid),
    /// Stop the health checks of `Knock`.
    StopKnocking(Uid),
    /// Repeat health checks over a new connection until the pod answers; report `TargetAnswers`.
    ///
    /// An earlier attempt for the same pod is ended.
    TryTarget { uid: Uid, target: Target },
    /// Drop the connection of a pod that no longer exists, and stop its health checks.
    Forget(Uid),
    /// Create the service of a slot.
    CreateService(String),
    /// Delete a service without a pod.
    DeleteService(ServiceObservation),
    /// Record that the node of a pod did not start it; report `InjectionGivenUp` if the injection
    /// is the likely cause.
    GiveUpInjection { uid: Uid, injection: Injection },
    /// Record a step in the start of a pod.
    StepReached {
        pod: PodName,
        step: StartStep,
        /// Time since the pod was requested; for `Metadata`, the duration of the lookup.
        took: Duration,
    },
    /// The start of a pod is over: the pod is gone or was not created.
    StartEnded(PodName),
    /// Publish the extent to which the cluster is known.
    Readiness(Readiness),
}
