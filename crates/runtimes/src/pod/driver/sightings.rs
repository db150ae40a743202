//! What the watches, announcements and knocks show.

use std::net::IpAddr;

use runner_cluster::{BadTemplate, Seen, Sighting};
use runner_pool::{Event, Observed, PodName, PodPhase, Uid};

use super::Driver;
use crate::pod::{
    announce::Heard,
    connection::{Connect, knock},
    link::Link,
    message::Message,
    start::Phase,
};

impl Driver {
    pub(super) fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(sighting) => self.see_pod(*sighting),
            Seen::PodGone { name, uid } => {
                if let Some(link) = self.links.remove(&uid) {
                    self.check_later(link.slot.as_str());
                }
                // Nobody will announce that pod any more.
                if self.tokens.get(&name).and_then(|token| token.pod.as_ref()) == Some(&uid) {
                    self.tokens.remove(&name);
                }
                self.tell(Event::PodGone { name, uid });
            }
            Seen::Pods(present) => {
                self.links
                    .retain(|uid, link| link.seen.is_none() || present.contains(uid));
                self.tell(Event::Listed(present));
                self.listed.0 = true;
            }
            Seen::Service(service) => self.see_service(service),
            Seen::ServiceGone(name) => self.service_gone(&name),
            Seen::Services(names) => {
                self.services_listed(&names);
                self.listed.1 = true;
            }
            Seen::Templates(Ok(templates))
                if self.connect == Connect::Service && templates.service_is_headless() =>
            {
                let error = BadTemplate::headless();
                tracing::error!("{error}");
                self.template_error = Some(error);
            }
            Seen::Templates(Ok(templates)) => {
                let template = templates.for_pool(self.creator.render.max_request_body_size);
                self.template_error = None;
                // First: what the pool asks for next is to be made from these.
                self.templates = Some(templates.clone());
                // Now, so that the first pod need not wait for the answer of the API server.
                let injector = self.creator.injector.clone();
                tokio::spawn(async move { injector.choose(&templates).await });
                self.tell(Event::TemplateChanged(template));
            }
            Seen::Templates(Err(error)) => {
                self.template_error = Some(error);
            }
        }
        if self.listed == (true, true)
            && (self.templates.is_some() || self.template_error.is_some())
        {
            self.in_step
                .send_if_modified(|in_step| !std::mem::replace(in_step, true));
        }
    }

    pub(super) fn see_pod(&mut self, mut sighting: Sighting) {
        sighting.observed.phase = match sighting.observed.phase {
            PodPhase::Failed(failure)
                if self.creator.injector.failed(sighting.injection, &failure) =>
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
        let news = (
            sighting.scheduled,
            sighting.address.is_some(),
            sighting.unschedulable.is_some() && link.unschedulable.is_none(),
        );
        link.update(&sighting);
        if news.0 {
            self.reach(&uid, Phase::Scheduled);
        }
        if news.1 {
            self.reach(&uid, Phase::Address);
        }
        if matches!(sighting.observed.phase, PodPhase::Ready) {
            self.reach(&uid, Phase::Ready);
        }
        if news.2 {
            let (messages, uid) = (self.messages.clone(), uid.clone());
            let patience = self.unschedulable_timeout;
            tokio::spawn(async move {
                tokio::time::sleep(patience).await;
                let _ = messages.send(Message::CheckSchedule(uid));
            });
        }
        self.tell(Event::Pod(sighting.observed));
        self.consider_knocking(&uid);
        self.consider_moving(&uid);
    }

    /// A pod that still has no node counts as failed, in the scheduler's words.
    pub(super) fn check_schedule(&mut self, uid: &Uid) {
        let Some(link) = self.links.get(uid) else {
            return;
        };
        if let (Some(failure), Some(seen)) = (&link.unschedulable, &link.seen) {
            let mut seen = seen.clone();
            seen.phase = PodPhase::Failed(failure.clone());
            self.tell(Event::Pod(seen));
        }
    }

    /// Checks an announcement: the slot's own token, for the first time, of the pod waited for.
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

    /// A pod said that it listens: dial it at once.
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

    /// Knocks at a pod that nobody has heard of yet, as soon as it is known where it is.
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

    /// A pod answered.
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
