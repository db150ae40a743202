//! Errors returned to callers whose request fails in the pool.

use std::time::Duration;

use runner_core::{EvaluationError, Reason};

use super::{Fleet, Life, Pod};
use crate::{PodFailure, Waited};

impl Fleet {
    pub(crate) fn queue_full(&self, waiting: usize, retry: Duration) -> EvaluationError {
        self.complaint(
            Reason::QueueFull,
            format!(
                "{waiting} requests wait for function \"{}\" already (--max-queue-per-function)",
                self.function
            ),
        )
        .retry_in(retry)
    }

    pub(crate) fn too_late(&self, waited: Waited) -> EvaluationError {
        let mut message = format!(
            "deadline exceeded before function \"{}\" ran: queued {:.3?}, starting pod {:.3?}",
            self.function, waited.queued, waited.starting
        );
        if !waited.lost.is_zero() {
            message += &format!(", on a lost pod {:.3?}", waited.lost);
        }
        // A caller that waited for an unavailable pod gets the cause. An unreachable API server or
        // registry is reported as such, not as an exceeded deadline.
        let mut reason = Reason::DeadlineExceeded;
        let none = self.pods.iter().all(|pod| pod.life == Life::Creating);
        if let Some(failure) = self.backoff.last() {
            message += &format!("; the last start failed: {}", failure.error);
            let why = failure.error.reason();
            let unreachable = [Reason::KubernetesUnreachable, Reason::RegistryUnreachable];
            if none && unreachable.contains(&why) {
                reason = why;
            }
        } else if none && let Some(asked) = self.pods.first() {
            message += &format!(
                "; the Kubernetes API server has not answered for pod {} yet",
                asked.name
            );
        }
        self.complaint(reason, message)
            .with("queued_ms", waited.queued.as_millis().to_string())
            .with("starting_pod_ms", waited.starting.as_millis().to_string())
    }

    pub(crate) fn pod_lost(&self, pod: &str, detail: &str, retries: u32) -> EvaluationError {
        let again = match retries {
            0 => String::new(),
            1 => ", the second one for this request".to_owned(),
            more => format!(", the last of {} for this request", more.saturating_add(1)),
        };
        self.complaint(
            Reason::PodLost,
            format!(
                "pod {pod} did not answer for function \"{}\"{again}: {detail}",
                self.function
            ),
        )
        .with("pod", pod)
    }

    pub(crate) fn pod_failed(&self, pod: &Pod, failure: &PodFailure) -> EvaluationError {
        self.complaint(
            Reason::PodStartFailed,
            format!(
                "pod {} cannot run function \"{}\": {}: {}",
                pod.name, self.function, failure.reason, failure.message
            ),
        )
        .with("pod", pod.name.as_str())
        .with("pod_reason", &*failure.reason)
    }

    pub(crate) fn pod_too_slow(&self, pod: &Pod, limit: Duration) -> EvaluationError {
        let detail = pod.waits_for.as_deref().unwrap_or("it gave no reason");
        self.complaint(
            Reason::PodStartFailed,
            format!(
                "pod {} of function \"{}\" was not ready within {limit:?} (--pod-ready-timeout): {detail}",
                pod.name, self.function
            ),
        )
        .with("pod", pod.name.as_str())
    }

    pub(crate) fn pod_vanished(&self, pod: &Pod) -> EvaluationError {
        self.complaint(
            Reason::PodStartFailed,
            format!(
                "pod {} of function \"{}\" was removed before it was ready",
                pod.name, self.function
            ),
        )
        .with("pod", pod.name.as_str())
    }

    fn complaint(&self, reason: Reason, message: String) -> EvaluationError {
        EvaluationError::new(reason, message).with("image", self.function.key().as_ref())
    }
}
