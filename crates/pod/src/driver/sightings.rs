//! Handles observations of the watches, announcements and answers to knocks.

use std::{net::IpAddr, time::Duration};

use runner_cluster::{Observation, PodObservation, TemplateError};
use runner_pool::{Event, Observed, PodFailure, PodName, PodPhase, Uid};

use super::Driver;
use crate::{
    InStep,
    announce::Heard,
    connection::{Connect, knock},
    link::Link,
    message::Message,
    start::Phase,
};

impl Driver {
    pub(super) fn see(&mut self, seen: Observation) {
        match seen {
            Observation::Pod(sighting) => self.see_pod(*sighting),
            Observation::PodGone { name, uid } => {
                if let Some(link) = self.links.remove(&uid) {
                    self.check_later(link.slot.as_str());
                }
                // That pod will not announce itself any more.
                if self.tokens.get(&name).and_then(|token| token.pod.as_ref()) == Some(&uid) {
                    self.tokens.remove(&name);
                }
                self.tell(Event::PodGone { name, uid });
            }
            Observation::Pods(present) => {
                self.links
                    .retain(|uid, link| link.seen.is_none() || present.contains(uid));
                self.tell(Event::Listed(present));
                self.listed.0 = true;
            }
            Observation::Service(service) => self.see_service(service),
            Observation::ServiceGone(name) => self.service_gone(&name),
            Observation::Services(names) => {
                self.services_listed(&names);
                self.listed.1 = true;
            }
            Observation::Templates(Ok(templates))
                if self.connect == Connect::Service && templates.service_is_headless() =>
            {
                let error = TemplateError::headless();
                tracing::error!("{error}");
                self.template_error = Some(error);
            }
            Observation::Templates(Ok(templates)) => {
                let template = templates.for_pool(&self.creator.render);
                self.template_error = None;
                // Set first: the pool's next pods are to be made from these templates.
                self.templates = Some(templates.clone());
                // Choose now, so that the first pod need not wait for the answer of the API server.
                let injector = self.creator.injector.clone();
                tokio::spawn(async move { injector.choose(&templates).await });
                self.tell(Event::TemplateChanged(template));
            }
            Observation::Templates(Err(error)) => {
                self.template_error = Some(error);
            }
        }
        if self.listed == (true, true) {
            let known = self.templates.is_some() || self.template_error.is_some();
            let now = if known {
                InStep::Yes
            } else {
                InStep::ButTemplates
            };
            self.in_step.send_if_modified(|in_step| {
                *in_step < now && std::mem::replace(in_step, now) != now
            });
        }
    }

    pub(super) fn see_pod(&mut self, mut sighting: PodObservation) {
        sighting.observed.phase = match sighting.observed.phase {
            PodPhase::Failed(failure)
                if self
                    .creator
                    .injector
                    .record_failure(sighting.injection, &failure) =>
            {
                PodPhase::FailedAvoidably(failure)
            }
            phase => phase,
        };
        let uid = sighting.observed.uid.clone();
        let Observed { name, slot, .. } = &sighting.observed;
        if !self.links.contains_key(&uid) {
            self.check_later(slot.as_str());
        }
        let link = self
            .links
            .entry(uid.clone())
            .or_insert_with(|| Link::new(name.clone(), slot.clone(), None));
        let is_unschedulable = sighting.unschedulable.is_some() && link.unschedulable.is_none();
        let is_scheduled = sighting.scheduled && !link.scheduled;
        link.update(&sighting);
        if sighting.scheduled {
            self.reach(&uid, Phase::Scheduled);
        }
        if sighting.address.is_some() {
            self.reach(&uid, Phase::Address);
        }
        if matches!(sighting.observed.phase, PodPhase::Ready) {
            self.reach(&uid, Phase::Ready);
        }
        if is_unschedulable {
            self.check_start_in(self.unschedulable_timeout, &uid);
        }
        if is_scheduled && sighting.address.is_none() {
            self.check_start_in(self.address_timeout, &uid);
        }
        self.tell(Event::Pod(sighting.observed));
        self.consider_knocking(&uid);
        self.consider_moving(&uid);
    }

    fn check_start_in(&self, delay: Duration, uid: &Uid) {
        let (messages, uid) = (self.messages.clone(), uid.clone());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = messages.send(Message::CheckStart(uid));
        });
    }

    /// Gives up a pod whose start takes too long.
    ///
    /// A pod without a node fails with the scheduler's message. A pod whose node has not begun to
    /// start it fails only if another injection may help.
    pub(super) fn check_start(&mut self, uid: &Uid) {
        let Some(link) = self.links.get(uid).filter(|link| link.is_awaited()) else {
            return;
        };
        let Some(mut seen) = link.seen.clone() else {
            return;
        };
        let is_stuck = link.scheduled && link.address.is_none();
        seen.phase = if let Some(failure) = &link.unschedulable {
            PodPhase::Failed(failure.clone())
        } else if is_stuck && self.creator.injector.record_stuck(link.injection) {
            PodPhase::FailedAvoidably(PodFailure {
                reason: "NotStarted".into(),
                message: "its node has not begun to start it".into(),
            })
        } else {
            return;
        };
        self.tell(Event::Pod(seen));
    }

    /// Checks an announcement: the token must be that of the pod's start and unused, and the pod
    /// awaited.
    pub(super) fn announced(&mut self, slot: &PodName, token: &str, address: IpAddr) -> Heard {
        let Some(known) = self.tokens.get_mut(slot) else {
            return Heard::Refused;
        };
        if !known.redeem(token) {
            return Heard::Refused;
        }
        match known.pod.clone() {
            Some(uid) => self.listens(&uid, address),
            None => {
                known.early = Some(address);
                Heard::Accepted
            }
        }
    }

    /// Dials a pod that announced itself.
    pub(super) fn listens(&mut self, uid: &Uid, address: IpAddr) -> Heard {
        self.reach(uid, Phase::Listening);
        let Some(link) = self.links.get_mut(uid).filter(|link| link.is_awaited()) else {
            return Heard::Late;
        };
        link.address.get_or_insert(address);
        link.stop_knocking();
        self.consider_knocking(uid);
        Heard::Accepted
    }

    /// Knocks at a pod that has not answered yet, as soon as its address is known.
    pub(super) fn consider_knocking(&mut self, uid: &Uid) {
        let Some(link) = self.links.get_mut(uid) else {
            return;
        };
        if !link.is_awaited() {
            link.stop_knocking();
            return;
        }
        let service = self.services.get(link.slot.as_str());
        let Some(target) = link.target(self.connect, service, &self.service_domain) else {
            return;
        };
        if link.is_knocked_at() {
            return;
        }
        let channel = link.line.insert(target.dial()).channel.clone();
        let (messages, uid) = (self.messages.clone(), uid.clone());
        let task = tokio::spawn(async move {
            knock(channel).await;
            let _ = messages.send(Message::Knocked(uid));
        });
        link.knock_with(task.abort_handle());
    }

    /// Handles the answer of a pod that was knocked at.
    pub(super) fn knocked(&mut self, uid: &Uid) {
        let Some(link) = self.links.get_mut(uid) else {
            return;
        };
        link.stop_knocking();
        if std::mem::replace(&mut link.answered, true) {
            return;
        }
        let name = link.name.clone();
        self.reach(uid, Phase::Ready);
        self.tell(Event::Ready {
            name,
            uid: uid.clone(),
            attempt: None,
        });
        tracing::debug!(pod = %uid, "a pod answers");
    }
}
