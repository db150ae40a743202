//! Decisions about services: keeps pods and services in pairs, and calls pods through their
//! services.

use std::{collections::HashSet, time::Duration};

use runner_cluster::ServiceObservation;
use runner_pool::{Time, Uid};

use super::{Coordinator, Due, Effect, PodRecord};
use crate::target::{Connect, Target};

/// Time to wait before a pod and its service are compared (2 s).
///
/// Removal of a pod is followed by that of its service, and the watches may show both in either
/// order.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(2);

impl Coordinator {
    pub(super) fn service_observed(
        &mut self,
        service: ServiceObservation,
        effects: &mut Vec<Effect>,
    ) {
        let slot = service.name.clone();
        self.services.insert(slot.clone(), service);
        for uid in self.pods_in(&slot) {
            self.consider_knocking(&uid, effects);
            self.consider_moving(&uid, effects);
        }
    }

    /// Calls the pods of a removed service directly, if that is allowed. Otherwise the existing
    /// connections stay: they outlive the service.
    pub(super) fn service_gone(&mut self, now: Time, slot: &str, effects: &mut Vec<Effect>) {
        self.services.remove(slot);
        if self.options.connect != Connect::Service {
            for uid in self.pods_in(slot) {
                if let Some(pod) = self.pods.get_mut(&uid)
                    && pod.connection.take_if(|it| it.is_service()).is_some()
                {
                    effects.push(Effect::Disconnect(uid));
                }
            }
        }
        self.check_slot_later(now, slot);
    }

    /// Handles a new list of services: those that are missing were removed while the watch was
    /// down.
    pub(super) fn services_listed(
        &mut self,
        now: Time,
        present: &HashSet<String>,
        effects: &mut Vec<Effect>,
    ) {
        self.services.retain(|name, _| present.contains(name));
        let slots = self.pods.values().map(|pod| pod.slot.as_str());
        let without: HashSet<String> = slots
            .filter(|slot| !present.contains(*slot))
            .map(str::to_owned)
            .collect();
        for slot in without {
            self.service_gone(now, &slot, effects);
        }
    }

    /// Creates the service that a pod of the slot lacks, or removes a service without a pod.
    pub(super) fn check_slot(&self, slot: &str, effects: &mut Vec<Effect>) {
        let mut pods = self.pods.values().filter(|pod| pod.slot.as_str() == slot);
        match self.services.get(slot) {
            Some(service) => {
                if pods.next().is_none() && !self.is_being_filled(slot) {
                    effects.push(Effect::DeleteService(service.clone()));
                }
            }
            None => {
                let is_wanted = self.options.connect != Connect::Pod
                    && self.has_template
                    && !self.pool.is_draining();
                if is_wanted && pods.any(PodRecord::is_in_use) {
                    effects.push(Effect::CreateService(slot.to_owned()));
                }
            }
        }
    }

    /// Returns whether a pod is being created for a slot.
    fn is_being_filled(&self, slot: &str) -> bool {
        let mut starts = self.creating.values();
        starts.any(|start| start.slot().as_str() == slot)
    }

    /// Removes services that have had no pod for a whole round, and creates those that are missing.
    ///
    /// This repeats requests to the API server that have failed.
    pub(super) fn check_slots(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let slots: HashSet<&str> = self
            .pods
            .values()
            .map(|pod| pod.slot.as_str())
            .chain(self.creating.values().map(|start| start.slot().as_str()))
            .collect();
        let without_pod = |name: &str| !slots.contains(name);
        self.orphans
            .retain(|name, _| self.services.contains_key(name) && without_pod(name));
        for name in self.services.keys().filter(|name| without_pod(name)) {
            self.orphans.entry(name.clone()).or_insert(now);
        }
        // Another replica may be about to fill the slot.
        let orphans = self.orphans.iter();
        let orphans = orphans.filter(|(_, since)| now.since(**since) >= self.options.scan_interval);
        let orphans = orphans.map(|(name, _)| name.as_str());
        let bare = slots.iter().copied();
        let bare = bare.filter(|slot| !self.services.contains_key(*slot));
        for slot in orphans.chain(bare) {
            self.check_slot(slot, effects);
        }
    }

    /// Returns the service that is unused once this pod is gone.
    pub(super) fn service_unused_without(&self, uid: &Uid) -> Option<ServiceObservation> {
        let slot = &self.pods.get(uid)?.slot;
        let mut others = self.pods.iter().filter(|(other, _)| *other != uid);
        if others.any(|(_, pod)| pod.slot == *slot) || self.is_being_filled(slot.as_str()) {
            return None;
        }
        self.services.get(slot.as_str()).cloned()
    }

    /// Moves the connection of a pod to its service where that is now preferred, because the pod is
    /// ready or the service replaced another.
    ///
    /// The move waits until the service forwards to the pod: nodes set up a service later than the
    /// watch shows it. If that takes too long, the next observation of the pod starts another
    /// attempt.
    pub(super) fn consider_moving(&self, uid: &Uid, effects: &mut Vec<Effect>) {
        if let Some(pod) = self.pods.get(uid)
            && let Some(current) = &pod.connection
            && let Some(target) = self.target(pod)
            && target.is_service()
            && target != *current
        {
            let uid = uid.clone();
            effects.push(Effect::TryTarget { uid, target });
        }
    }

    /// Calls a pod at a target that answers, if it is still preferred.
    pub(super) fn move_to(&mut self, uid: &Uid, target: Target, effects: &mut Vec<Effect>) {
        let pod = self.pods.get(uid);
        if pod.and_then(|pod| self.target(pod)).as_ref() == Some(&target) {
            self.connect(uid, target, effects);
        }
    }

    /// Checks a slot after the watches had time to show both its pod and its service.
    pub(super) fn check_slot_later(&mut self, now: Time, slot: &str) {
        self.schedule(now + SETTLE_TIME, Due::Slot(slot.to_owned()));
    }

    /// Returns the pods in a slot, in an order that does not depend on the hash map.
    fn pods_in(&self, slot: &str) -> Vec<Uid> {
        let pods = self.pods.iter();
        let in_slot = pods.filter(|(_, pod)| pod.slot.as_str() == slot);
        let mut uids: Vec<Uid> = in_slot.map(|(uid, _)| uid.clone()).collect();
        uids.sort_unstable();
        uids
    }
}
