//! Carries out the pool's actions, each in a task of its own.

use std::time::Instant;

use futures::{StreamExt, stream};
use runner_cluster::{AnnounceTarget, DeleteOutcome};
use runner_pool::{Assign, Create, Delete, Event, Extension, Outcome, PodName, Uid};

use super::Driver;
use crate::{
    announce::Token,
    connection::{Target, probe},
    create::no_template,
    message::{Assigned, Message, Verdict},
    start::Start,
};

/// Number of patches sent at a time; they are never urgent.
const EXTENSIONS: usize = 4;

impl Driver {
    pub(super) fn create(&mut self, create: Create) -> Option<Event> {
        self.metrics.created();
        let templates = match (&self.templates, &self.template_error) {
            (Some(templates), _) => templates.clone(),
            (None, Some(error)) => return Some(refused(&create, &error.to_string())),
            (None, None) => return Some(refused(&create, "no pod template was read yet")),
        };
        let token = Token::new();
        let announce = self.announce_address.as_ref().zip(token.as_ref());
        let announce = announce.map(|(runner, token)| AnnounceTarget {
            runner: runner.clone(),
            token: token.secret().to_owned(),
        });
        if let Some(token) = token {
            self.tokens.insert(create.name.clone(), token);
        }
        let asked_by = self.asked_by.as_ref();
        let start = Start::new(&create.name, create.slot.clone(), asked_by, self.tracing);
        self.asked.insert(create.name.clone(), start);
        tokio::spawn(self.creator.clone().create(create, templates, announce));
        None
    }

    pub(super) fn delete(&mut self, delete: Delete) {
        self.metrics.deleted(delete.why);
        tracing::info!(pod = %delete.name, why = ?delete.why, "removing a pod");
        let service = self.service_left_by(&delete.uid);
        let (creator, messages) = (self.creator.clone(), self.messages.clone());
        tokio::spawn(async move {
            let failed = |conflict| Event::DeleteFailed {
                name: delete.name.clone(),
                uid: delete.uid.clone(),
                conflict,
            };
            let event = match creator.cluster.delete_pod(&delete).await {
                DeleteOutcome::Accepted => None,
                DeleteOutcome::Gone => Some(Event::PodGone {
                    name: delete.name.clone(),
                    uid: delete.uid.clone(),
                }),
                DeleteOutcome::Conflict => Some(failed(true)),
                DeleteOutcome::Failed(error) => {
                    error.log("cannot delete a pod", delete.name.as_str());
                    Some(failed(false))
                }
            };
            let removed = !matches!(event, Some(Event::DeleteFailed { .. }));
            if let Some(event) = event {
                let _ = messages.send(Message::Event(event));
            }
            if removed && let Some(service) = service {
                creator.remove_service(service).await;
            }
        });
    }

    pub(super) fn assign(&mut self, assign: &Assign) -> Option<Event> {
        let lost = |detail: &str| {
            Some(Event::Done {
                request: assign.request,
                pod: assign.pod.clone(),
                outcome: Outcome::PodLost {
                    detail: detail.to_owned(),
                },
            })
        };
        let Some(link) = self.links.get_mut(&assign.pod) else {
            return lost("nothing is known of the pod any more");
        };
        let service = self.services.get(link.slot.as_str());
        let channel = match &link.line {
            Some(line) => line.channel.clone(),
            None => match link.target(self.connect, service, &self.service_domain) {
                Some(target) => link.line.insert(target.dial()).channel.clone(),
                None => return lost("the pod has no address yet"),
            },
        };
        let assigned = Assigned {
            name: assign.name.clone(),
            pod: assign.pod.clone(),
            channel,
            waited: assign.waited,
            since: Instant::now(),
        };
        let reply = self.requests.get(&assign.request)?;
        // A caller that went away cancels its request itself.
        let _ = reply.send(Verdict::Assigned(assigned));
        None
    }

    pub(super) fn extend(&self, extensions: Vec<Extension>) {
        let (cluster, messages) = (self.creator.cluster.clone(), self.messages.clone());
        tokio::spawn(async move {
            let writes = stream::iter(extensions).map(|extension| {
                let (cluster, messages) = (cluster.clone(), messages.clone());
                async move {
                    if let Err(error) = cluster.extend(&extension).await {
                        error.log(
                            "cannot write a pod's reclaim-after",
                            extension.name.as_str(),
                        );
                        let Extension { name, uid, .. } = extension;
                        let failed = Event::ExtendFailed { name, uid };
                        let _ = messages.send(Message::Event(failed));
                    }
                }
            });
            writes.buffer_unordered(EXTENSIONS).collect::<()>().await;
        });
    }

    /// Probes a pod over new connections to all its targets: the present one may be broken.
    pub(super) fn probe(&self, name: PodName, uid: Uid) -> Option<Event> {
        let targets = self.links.get(&uid).map(|link| {
            let service = self.services.get(link.slot.as_str());
            link.targets(self.connect, service, &self.service_domain)
        });
        let lines: Vec<_> = targets.into_iter().flatten().map(Target::dial).collect();
        if lines.is_empty() {
            return Some(Event::ProbeFailed { name, uid });
        }
        let (messages, within) = (self.messages.clone(), self.probe_timeout);
        tokio::spawn(async move {
            let answered = probe(lines, within).await;
            let _ = messages.send(Message::Probed {
                name,
                uid,
                answered,
            });
        });
        None
    }
}

fn refused(create: &Create, why: &str) -> Event {
    Event::StartFailed {
        name: create.name.clone(),
        attempt: create.attempt,
        failure: no_template(why),
    }
}
