//! The coordinator's record of one pod: its address, its connection and its start.

use std::net::IpAddr;

use runner_cluster::{Injection, PodObservation, ServiceObservation};
use runner_pool::{Observed, PodFailure, PodName, PodPhase, Time, Uid};

use super::{Effect, start::Start};
use crate::target::{Connect, Target};

/// A pod, identified by its uid.
#[derive(Debug)]
pub(super) struct PodRecord {
    pub(super) name: PodName,
    /// Name of the slot that the pod fills, and of its service.
    pub(super) slot: PodName,
    /// Timing of the start; none: another process created the pod.
    pub(super) start: Option<Start>,
    /// Last observation of the pod.
    pub(super) observed: Option<Observed>,
    pub(super) address: Option<IpAddr>,
    /// The way in which the wrapper gets into the pod.
    pub(super) injection: Injection,
    /// The scheduler's message, and the time since which the pod has had no node.
    pub(super) unschedulable: Option<(PodFailure, Time)>,
    /// Time since which the pod has had a node, but no address.
    pub(super) without_address: Option<Time>,
    pub(super) answered: bool,
    pub(super) knocking: bool,
    /// Target of the connection to the pod, from its first use on.
    pub(super) connection: Option<Target>,
}

// === impl PodRecord ===

impl PodRecord {
    pub(super) fn new(name: PodName, slot: PodName) -> Self {
        Self {
            name,
            slot,
            start: None,
            observed: None,
            address: None,
            injection: Injection::default(),
            unschedulable: None,
            without_address: None,
            answered: false,
            knocking: false,
            connection: None,
        }
    }

    /// Applies an observation of the pod.
    pub(super) fn update(&mut self, now: Time, observation: &PodObservation) {
        self.address = observation.address.or(self.address);
        self.injection = observation.injection;
        let since = self.unschedulable.take().map_or(now, |(_, since)| since);
        self.unschedulable = observation.unschedulable.clone().map(|why| (why, since));
        let is_without_address = observation.scheduled && self.address.is_none();
        self.without_address = is_without_address.then(|| self.without_address.unwrap_or(now));
        self.observed = Some(observation.observed.clone());
    }

    /// Returns whether the pod runs or starts.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self.phase(), Some(PodPhase::Ready | PodPhase::Starting(_)))
    }

    /// Returns whether the pod is awaited: it has not answered, and Kubernetes still shows it as
    /// starting.
    pub(super) fn is_awaited(&self) -> bool {
        !self.answered && matches!(self.phase(), None | Some(PodPhase::Starting(_)))
    }

    pub(super) fn stop_knocking(&mut self, uid: &Uid, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.knocking) {
            effects.push(Effect::StopKnocking(uid.clone()));
        }
    }

    fn phase(&self) -> Option<&PodPhase> {
        self.observed.as_ref().map(|observed| &observed.phase)
    }

    /// Returns the targets at which the pod may be called, the preferred one first.
    pub(super) fn targets(
        &self,
        connect: Connect,
        service: Option<&ServiceObservation>,
        domain: &str,
    ) -> Vec<Target> {
        let own = self.address.map(|address| Target {
            address,
            authority: None,
        });
        let of_service = service.and_then(|service| {
            let (name, port) = (&service.name, runner_cluster::PORT);
            Some(Target {
                address: service.cluster_ip?,
                authority: Some(format!("http://{name}.{domain}:{port}")),
            })
        });
        let is_ready = matches!(self.phase(), Some(PodPhase::Ready));
        let targets = match connect {
            Connect::Pod => [own, None],
            Connect::Service => [of_service, None],
            Connect::Auto if is_ready => [of_service, own],
            Connect::Auto => [own, None],
        };
        targets.into_iter().flatten().collect()
    }
}
