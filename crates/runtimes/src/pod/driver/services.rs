//! Services that come and go before pods in use.

use std::{collections::HashSet, time::Duration};

use runner_cluster::ServiceSeen;
use runner_pool::{PodPhase, Uid};

use super::Driver;
use crate::pod::{
    connection::{Connect, Line, knock},
    message::Message,
};

/// How far apart the news of a pod and of its service may come: whoever removes a pod removes its
/// service next, and the news may come the other way round.
const SETTLE: Duration = Duration::from_secs(2);

/// How long a service may take to lead to its pod.
const MOVE_WITHIN: Duration = Duration::from_secs(30);

impl Driver {
    pub(super) fn see_service(&mut self, service: ServiceSeen) {
        let name = service.name.clone();
        self.services.insert(name.clone(), service);
        for uid in self.pods_named(&name) {
            self.consider_knocking(&uid);
            self.consider_moving(&uid);
        }
    }

    pub(super) fn service_gone(&mut self, name: String) {
        self.services.remove(&name);
        self.leave_service(&name);
        self.check_later(name);
    }

    /// The watch started over: what went while nobody looked is gone now.
    pub(super) fn services_listed(&mut self, present: &HashSet<String>) {
        self.services.retain(|name, _| present.contains(name));
        let names = self.links.values().map(|link| link.name.as_str());
        let without: HashSet<String> = names
            .filter(|name| !present.contains(*name))
            .map(str::to_owned)
            .collect();
        for name in without {
            self.service_gone(name);
        }
    }

    /// A pod answers on this line; the one before it may be broken.
    pub(super) fn moved(&mut self, uid: &Uid, line: Line) {
        if let Some(link) = self.links.get_mut(uid) {
            link.line = Some(line);
        }
    }

    /// Somebody deleted the service of a pod that is there.
    pub(super) fn restore_service(&mut self, name: &str) {
        if self.services.contains_key(name) {
            return;
        }
        let in_use = self.links.values().any(|link| {
            link.name.as_str() == name
                && link.seen.as_ref().is_some_and(|seen| {
                    matches!(seen.phase, PodPhase::Ready | PodPhase::Starting(_))
                })
        });
        let Some(templates) = &self.templates else {
            return;
        };
        if !in_use || !self.creator.services || self.pool.is_draining() {
            return;
        }
        let (creator, templates, name) = (self.creator.clone(), templates.clone(), name.to_owned());
        tokio::spawn(async move { creator.make_service(&name, &templates).await });
    }

    /// Pods of a service that is gone are called directly, where that is allowed. Where it is not,
    /// the connections there are outlive the service.
    fn leave_service(&mut self, name: &str) {
        if self.connect == Connect::Service {
            return;
        }
        let of_it = self
            .links
            .values_mut()
            .filter(|link| link.name.as_str() == name);
        for link in of_it {
            link.line.take_if(|line| line.target.is_service());
        }
    }

    /// Calls a pod through its service where that is the better way by now, because the pod is
    /// ready or the service took the place of another. Not before the service leads there: the
    /// nodes hear of it later than we do.
    pub(super) fn consider_moving(&mut self, uid: &Uid) {
        let Some(link) = self.links.get_mut(uid) else {
            return;
        };
        let service = self.services.get(link.name.as_str());
        let target = link.target(self.connect, service, &self.namespace);
        let moves = |line: &Line| {
            let better = target.as_ref().filter(|to| to.is_service());
            better.is_some_and(|to| *to != line.target)
        };
        let Some(target) = target
            .clone()
            .filter(|_| link.line.as_ref().is_some_and(moves))
        else {
            return;
        };
        let (messages, uid, line) = (self.messages.clone(), uid.clone(), target.dial());
        let task = tokio::spawn(async move {
            // What is seen of the pod next begins anew.
            let knocked = tokio::time::timeout(MOVE_WITHIN, knock(line.channel.clone()));
            if knocked.await.is_ok() {
                let _ = messages.send(Message::Moved { uid, line });
            }
        });
        link.move_with(task.abort_handle());
    }

    fn check_later(&self, name: String) {
        let messages = self.messages.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SETTLE).await;
            let _ = messages.send(Message::CheckService(name));
        });
    }

    fn pods_named(&self, name: &str) -> Vec<Uid> {
        let named = self
            .links
            .iter()
            .filter(|(_, link)| link.name.as_str() == name);
        named.map(|(uid, _)| uid.clone()).collect()
    }
}
