//! Carries out the coordinator's effects; those that take time, each in a task of its own.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use runner_cluster::{AnnounceTarget, DeleteOutcome, ServiceObservation};
use runner_pool::{Assign, Create, Delete, Event, Extension, PodName, Uid};
use tokio::task::AbortHandle;

use super::{Context, Driver, spans::StartSpans};
use crate::{
    connection::{Connection, knock, probe},
    coordinator::{Effect, Input},
    inbox::{Assigned, Decision, Message},
    target::Target,
};

/// Number of patches sent at a time; they are never urgent.
const PARALLEL_EXTENSIONS: usize = 4;

/// Time limit for a service to forward to its pod (30 s).
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);

/// The connection to one pod and the tasks that check its health.
#[derive(Default)]
pub(super) struct PodTasks {
    connection: Option<Connection>,
    knocking: Option<AbortOnDrop>,
    /// Task that waits until the pod answers at a better target.
    moving: Option<AbortOnDrop>,
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop(AbortHandle);

impl Driver {
    pub(super) fn carry_out(&mut self, effect: Effect, context: &mut Context) {
        match effect {
            Effect::Assign(assign) => self.assign(assign),
            Effect::Reject { request, error } => {
                if let Some(reply) = self.requests.remove(&request) {
                    let _ = reply.send(Decision::Rejected(error));
                }
            }
            Effect::CreatePod { create, secret } => self.create(create, secret, context),
            Effect::DeletePod { delete, service } => self.delete(delete, service),
            Effect::ExtendPods(extensions) => self.extend(extensions),
            Effect::Probe { name, uid, targets } => self.probe(name, uid, targets),
            Effect::Connect { uid, target } => {
                let answered = context.connection.take();
                let answered = answered.filter(|connection| connection.target == target);
                let connection = answered.unwrap_or_else(|| target.connect());
                self.pods.entry(uid).or_default().connection = Some(connection);
            }
            Effect::Disconnect(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.connection = None;
                }
            }
            Effect::Knock(uid) => self.knock(uid),
            Effect::StopKnocking(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.knocking = None;
                }
            }
            Effect::TryTarget { uid, target } => self.try_target(uid, target),
            Effect::Forget(uid) => {
                self.pods.remove(&uid);
            }
            Effect::CreateService(slot) => {
                if let Some(templates) = self.templates.clone() {
                    let creator = self.creator.clone();
                    tokio::spawn(async move { creator.make_service(&slot, &templates).await });
                }
            }
            Effect::DeleteService(service) => {
                tracing::info!(service = service.name, "removing a service without a pod");
                tokio::spawn(self.creator.clone().remove_service(service));
            }
            Effect::GiveUpInjection { uid, injection } => {
                if self.creator.injector.record_stuck(injection) {
                    self.input(Input::InjectionGivenUp(uid));
                }
            }
            Effect::StepReached { pod, step, took } => {
                self.metrics.step_reached(step, took);
                if let Some(spans) = self.spans.get_mut(&pod) {
                    spans.reach(step);
                }
            }
            Effect::StartEnded(pod) => {
                self.spans.remove(&pod);
            }
            Effect::Readiness(readiness) => {
                self.readiness.send_replace(readiness);
            }
        }
    }

    fn assign(&self, assign: Assign) {
        let Some(reply) = self.requests.get(&assign.request) else {
            return;
        };
        let pod = self.pods.get(&assign.pod);
        let Some(connection) = pod.and_then(|pod| pod.connection.as_ref()) else {
            // The coordinator connects a pod before it assigns a request to it.
            debug_assert!(false, "a pod without a connection");
            return;
        };
        let assigned = Assigned {
            name: assign.name,
            pod: assign.pod,
            channel: connection.channel.clone(),
            waited: assign.waited,
            since: Instant::now(),
        };
        // A caller that went away cancels its request itself.
        let _ = reply.send(Decision::Assigned(assigned));
    }

    fn create(&mut self, create: Create, secret: Option<String>, context: &Context) {
        self.metrics.created();
        let Some(templates) = self.templates.clone() else {
            return;
        };
        let announce = self.announce_address.clone().zip(secret);
        let announce = announce.map(|(runner, token)| AnnounceTarget { runner, token });
        let spans = StartSpans::new(&create.name, context.request_span.as_ref(), self.tracing);
        self.spans.insert(create.name.clone(), spans);
        tokio::spawn(self.creator.clone().create(create, templates, announce));
    }

    fn delete(&self, delete: Delete, service: Option<ServiceObservation>) {
        self.metrics.deleted(delete.why);
        tracing::info!(pod = %delete.name, why = ?delete.why, "removing a pod");
        let (creator, inbox) = (self.creator.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let outcome = creator.cluster.delete_pod(&delete).await;
            let Delete { name, uid, .. } = delete;
            let is_conflict = matches!(outcome, DeleteOutcome::Conflict);
            let event = match outcome {
                DeleteOutcome::Accepted => None,
                DeleteOutcome::Gone => Some(Event::PodGone { name, uid }),
                DeleteOutcome::Conflict | DeleteOutcome::Failed(_) => {
                    if let DeleteOutcome::Failed(error) = outcome {
                        error.log("cannot delete a pod", name.as_str());
                    }
                    Some(Event::DeleteFailed {
                        name,
                        uid,
                        conflict: is_conflict,
                    })
                }
            };
            let is_deleted = !matches!(event, Some(Event::DeleteFailed { .. }));
            if let Some(event) = event {
                inbox.send(Message::Event(event)).await;
            }
            if is_deleted && let Some(service) = service {
                creator.remove_service(service).await;
            }
        });
    }

    fn extend(&self, extensions: Vec<Extension>) {
        let (cluster, inbox) = (self.creator.cluster.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let writes = stream::iter(extensions).map(|extension| {
                let (cluster, inbox) = (cluster.clone(), inbox.clone());
                async move {
                    if let Err(error) = cluster.extend(&extension).await {
                        let Extension { name, uid, .. } = extension;
                        error.log("cannot write a pod's reclaim-after", name.as_str());
                        let failed = Event::ExtendFailed { name, uid };
                        inbox.send(Message::Event(failed)).await;
                    }
                }
            });
            let writes = writes.buffer_unordered(PARALLEL_EXTENSIONS);
            writes.collect::<()>().await;
        });
    }

    /// Probes a pod over new connections to all its targets: the present one may be broken.
    fn probe(&self, name: PodName, uid: Uid, targets: Vec<Target>) {
        let connections = targets.into_iter().map(Target::connect).collect();
        let (inbox, within) = (self.inbox.clone(), self.probe_timeout);
        tokio::spawn(async move {
            let answered = probe(connections, within).await;
            let probed = Message::Probed {
                name,
                uid,
                answered,
            };
            inbox.send(probed).await;
        });
    }

    fn knock(&mut self, uid: Uid) {
        let Some(pod) = self.pods.get_mut(&uid) else {
            return;
        };
        if let Some(connection) = &pod.connection {
            let (inbox, channel) = (self.inbox.clone(), connection.channel.clone());
            let task = tokio::spawn(async move {
                knock(channel).await;
                inbox.send(Message::Knocked(uid)).await;
            });
            pod.knocking = Some(AbortOnDrop(task.abort_handle()));
        }
    }

    fn try_target(&mut self, uid: Uid, target: Target) {
        let (inbox, connection) = (self.inbox.clone(), target.connect());
        let pod = self.pods.entry(uid.clone()).or_default();
        let task = tokio::spawn(async move {
            let knocked = tokio::time::timeout(MOVE_TIMEOUT, knock(connection.channel.clone()));
            if knocked.await.is_ok() {
                inbox.send(Message::TargetAnswers { uid, connection }).await;
            }
        });
        pod.moving = Some(AbortOnDrop(task.abort_handle()));
    }
}

// === impl AbortOnDrop ===

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
