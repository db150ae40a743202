//! Keeps services and pods in pairs, and calls pods through their services.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use runner_cluster::ServiceObservation;
use runner_pool::Uid;

use super::Driver;
use crate::{
    connection::{Connect, Line, knock},
    link::Link,
    message::Message,
};

/// Time to wait before a pod and its service are compared (2 s).
///
/// Removal of a pod is followed by that of its service, and the watches may show both in either
/// order.
const SETTLE: Duration = Duration::from_secs(2);

/// Time limit for a service to forward to its pod (30 s).
const MOVE_WITHIN: Duration = Duration::from_secs(30);

impl Driver {
    pub(super) fn see_service(&mut self, service: ServiceObservation) {
        let name = service.name.clone();
        self.services.insert(name.clone(), service);
        for uid in self.pods_named(&name) {
            self.consider_knocking(&uid);
            self.consider_moving(&uid);
        }
    }

    pub(super) fn service_gone(&mut self, name: &str) {
        self.services.remove(name);
        self.leave_service(name);
        self.check_later(name);
    }

    /// Handles a new list of services: those that are missing were removed while the watch was
    /// down.
    pub(super) fn services_listed(&mut self, present: &HashSet<String>) {
        self.services.retain(|name, _| present.contains(name));
        let names = self.links.values().map(|link| link.slot.as_str());
        let without: HashSet<String> = names
            .filter(|name| !present.contains(*name))
            .map(str::to_owned)
            .collect();
        for name in without {
            self.service_gone(&name);
        }
    }

    /// Uses a line on which the pod answers; the previous one may be broken.
    pub(super) fn moved(&mut self, uid: &Uid, line: Line) {
        if let Some(link) = self.links.get_mut(uid) {
            link.line = Some(line);
        }
    }

    /// Creates the service that a pod of the slot lacks, or removes a service without a pod.
    pub(super) fn check_service(&mut self, slot: &str) {
        let in_slot = |link: &&Link| link.slot.as_str() == slot;
        match self.services.get(slot) {
            Some(service) => {
                let filled = self.links.values().any(|link| in_slot(&link));
                if !filled && !self.is_asked_for(slot) {
                    tracing::info!(service = slot, "removing a service without a pod");
                    tokio::spawn(self.creator.clone().remove_service(service.clone()));
                }
            }
            None => {
                let mut pods = self.links.values().filter(in_slot);
                if pods.any(Link::is_in_use) {
                    self.restore_service(slot);
                }
            }
        }
    }

    /// Returns whether a pod is being created for a slot.
    fn is_asked_for(&self, slot: &str) -> bool {
        let mut starts = self.asked.values();
        starts.any(|start| start.slot().as_str() == slot)
    }

    fn restore_service(&self, slot: &str) {
        let Some(templates) = &self.templates else {
            return;
        };
        if !self.creator.services || self.pool.is_draining() {
            return;
        }
        let (creator, templates, slot) = (self.creator.clone(), templates.clone(), slot.to_owned());
        tokio::spawn(async move { creator.make_service(&slot, &templates).await });
    }

    /// Removes services that have had no pod for a whole round, and creates those that are missing.
    ///
    /// This repeats requests to the API server that have failed.
    pub(super) fn check_services(&mut self, round: Duration) {
        let slots: HashSet<&str> = self
            .links
            .values()
            .map(|link| link.slot.as_str())
            .chain(self.asked.values().map(|start| start.slot().as_str()))
            .collect();
        let now = Instant::now();
        let without_pod = |name: &str| !slots.contains(name);
        self.orphans
            .retain(|name, _| self.services.contains_key(name) && without_pod(name));
        let services = self.services.keys();
        for name in services.filter(|name| without_pod(name)) {
            self.orphans.entry(name.clone()).or_insert(now);
        }
        // Another replica may be about to fill the slot.
        let orphans = self.orphans.iter();
        let orphans = orphans.filter(|(_, since)| now.duration_since(**since) >= round);
        let orphans = orphans.map(|(name, _)| name.clone());
        let bare = slots
            .iter()
            .filter(|slot| !self.services.contains_key(**slot))
            .map(|slot| (*slot).to_owned());
        let unpaired: Vec<String> = orphans.chain(bare).collect();
        for slot in unpaired {
            self.check_service(&slot);
        }
    }

    /// Returns the service that is unused once this pod is gone.
    pub(super) fn service_left_by(&self, uid: &Uid) -> Option<ServiceObservation> {
        let slot = &self.links.get(uid)?.slot;
        let mut others = self.links.iter().filter(|(other, _)| *other != uid);
        if others.any(|(_, link)| link.slot == *slot) || self.is_asked_for(slot.as_str()) {
            return None;
        }
        self.services.get(slot.as_str()).cloned()
    }

    /// Calls the pods of a removed service directly, if that is allowed. Otherwise the existing
    /// connections stay: they outlive the service.
    fn leave_service(&mut self, name: &str) {
        if self.connect == Connect::Service {
            return;
        }
        let of_it = self
            .links
            .values_mut()
            .filter(|link| link.slot.as_str() == name);
        for link in of_it {
            link.line.take_if(|line| line.target.is_service());
        }
    }

    /// Moves the connection of a pod to its service where that is now preferred, because the pod is
    /// ready or the service replaced another.
    ///
    /// The move waits until the service forwards to the pod: nodes set up a service later than the
    /// watch shows it.
    pub(super) fn consider_moving(&mut self, uid: &Uid) {
        let Some(link) = self.links.get_mut(uid) else {
            return;
        };
        let service = self.services.get(link.slot.as_str());
        let target = link.target(self.connect, service, &self.service_domain);
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
            // The next observation of the pod starts another attempt.
            let knocked = tokio::time::timeout(MOVE_WITHIN, knock(line.channel.clone()));
            if knocked.await.is_ok() {
                let _ = messages.send(Message::Moved { uid, line });
            }
        });
        link.move_with(task.abort_handle());
    }

    /// Checks a slot after the watches had time to show both its pod and its service.
    pub(super) fn check_later(&self, slot: &str) {
        let (messages, name) = (self.messages.clone(), slot.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(SETTLE).await;
            let _ = messages.send(Message::CheckService(name));
        });
    }

    fn pods_named(&self, name: &str) -> Vec<Uid> {
        let named = self
            .links
            .iter()
            .filter(|(_, link)| link.slot.as_str() == name);
        named.map(|(uid, _)| uid.clone()).collect()
    }
}
