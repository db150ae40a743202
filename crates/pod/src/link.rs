//! The driver's own state of one pod: its address and its connection.

use std::net::IpAddr;

use runner_cluster::{Injection, PodObservation, ServiceObservation};
use runner_pool::{Observed, PodFailure, PodName, PodPhase};
use tokio::task::AbortHandle;

use crate::{
    connection::{Connect, Line, Target},
    start::Start,
};

/// A pod, identified by its uid.
pub(crate) struct Link {
    pub(crate) name: PodName,
    /// Name of the slot that the pod fills, and of its service.
    pub(crate) slot: PodName,
    /// Timing of the start; none: another process created the pod.
    pub(crate) start: Option<Start>,
    /// Last observation of the pod.
    pub(crate) seen: Option<Observed>,
    pub(crate) address: Option<IpAddr>,
    /// Whether the pod is assigned to a node.
    pub(crate) scheduled: bool,
    /// The way in which the wrapper gets into the pod.
    pub(crate) injection: Injection,
    pub(crate) unschedulable: Option<PodFailure>,
    pub(crate) answered: bool,
    /// The connection to the pod, from its first use on.
    pub(crate) line: Option<Line>,
    knocking: Option<AbortHandle>,
    /// Task that waits until a better line works.
    moving: Option<AbortHandle>,
}

// === impl Link ===

impl Link {
    pub(crate) fn new(name: PodName, slot: PodName, start: Option<Start>) -> Self {
        Self {
            name,
            slot,
            start,
            seen: None,
            address: None,
            scheduled: false,
            injection: Injection::default(),
            unschedulable: None,
            answered: false,
            line: None,
            knocking: None,
            moving: None,
        }
    }

    /// Applies an observation of the pod.
    pub(crate) fn update(&mut self, sighting: &PodObservation) {
        self.address = sighting.address.or(self.address);
        self.scheduled = sighting.scheduled;
        self.injection = sighting.injection;
        self.unschedulable.clone_from(&sighting.unschedulable);
        self.seen = Some(sighting.observed.clone());
    }

    /// Returns whether the pod runs or starts.
    pub(crate) fn is_in_use(&self) -> bool {
        let seen = self.seen.as_ref();
        seen.is_some_and(|seen| matches!(seen.phase, PodPhase::Ready | PodPhase::Starting(_)))
    }

    /// Returns whether knocking is useful: the pod has not answered, and Kubernetes still shows it
    /// as starting.
    pub(crate) fn is_awaited(&self) -> bool {
        let starting = match &self.seen {
            Some(seen) => matches!(seen.phase, PodPhase::Starting(_)),
            None => true,
        };
        !self.answered && starting
    }

    /// Returns the preferred target, if one is known.
    pub(crate) fn target(
        &self,
        connect: Connect,
        service: Option<&ServiceObservation>,
        domain: &str,
    ) -> Option<Target> {
        self.targets(connect, service, domain).into_iter().next()
    }

    /// Returns the targets at which the pod may be dialled, the preferred one first.
    pub(crate) fn targets(
        &self,
        connect: Connect,
        service: Option<&ServiceObservation>,
        domain: &str,
    ) -> Vec<Target> {
        let own = self.address.map(|address| Target {
            address,
            authority: None,
        });
        let by_service = service.and_then(|service| {
            Some(Target {
                address: service.cluster_ip?,
                authority: Some(format!(
                    "http://{}.{domain}:{}",
                    service.name,
                    runner_cluster::PORT
                )),
            })
        });
        let ready = matches!(&self.seen, Some(seen) if matches!(seen.phase, PodPhase::Ready));
        let ways = match connect {
            Connect::Pod => [own, None],
            Connect::Service => [by_service, None],
            Connect::Auto if ready => [by_service, own],
            Connect::Auto => [own, None],
        };
        ways.into_iter().flatten().collect()
    }

    pub(crate) fn is_knocked_at(&self) -> bool {
        self.knocking.is_some()
    }

    pub(crate) fn knock_with(&mut self, task: AbortHandle) {
        if let Some(earlier) = self.knocking.replace(task) {
            earlier.abort();
        }
    }

    pub(crate) fn move_with(&mut self, task: AbortHandle) {
        if let Some(earlier) = self.moving.replace(task) {
            earlier.abort();
        }
    }

    pub(crate) fn stop_knocking(&mut self) {
        if let Some(task) = self.knocking.take() {
            task.abort();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop_knocking();
        if let Some(task) = self.moving.take() {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceObservation {
        ServiceObservation {
            name: "fn-1".to_owned(),
            uid: "s1".to_owned(),
            cluster_ip: Some([198, 19, 0, 1].into()),
        }
    }

    fn link(ready: bool) -> Link {
        let mut link = Link::new("fn-1-x7k2p".into(), "fn-1".into(), None);
        link.address = Some([198, 18, 0, 7].into());
        let status = if ready { "True" } else { "False" };
        let pod = format!(
            r#"{{"metadata": {{"name": "fn-1", "uid": "u1", "resourceVersion": "1"}},
                "spec": {{"containers": [{{"name": "function", "image": "ghcr.io/x/fn:v1"}}]}},
                "status": {{"conditions": [{{"type": "Ready", "status": "{status}"}}]}}}}"#
        );
        let sighting = runner_cluster::observe(&serde_json::from_str(&pod).unwrap()).unwrap();
        link.update(&sighting);
        link
    }

    #[test]
    fn dials_a_pod_directly_until_it_is_ready_and_has_a_service() {
        let dialled = |ready, connect, service: Option<&ServiceObservation>| {
            link(ready)
                .target(connect, service, "fns.svc.example.org")
                .map(|target| target.address.to_string())
        };
        let own = Some("198.18.0.7".to_owned());
        let of_service = Some("198.19.0.1".to_owned());
        let service = service();
        assert_eq!(dialled(false, Connect::Auto, Some(&service)), own);
        assert_eq!(dialled(true, Connect::Auto, Some(&service)), of_service);
        assert_eq!(dialled(true, Connect::Auto, None), own);
        assert_eq!(dialled(true, Connect::Pod, Some(&service)), own);
        assert_eq!(dialled(false, Connect::Service, Some(&service)), of_service);
        assert_eq!(dialled(false, Connect::Service, None), None);
    }

    #[test]
    fn requests_through_a_service_carry_its_name() {
        let target = link(true)
            .target(Connect::Service, Some(&service()), "fns.svc.example.org")
            .unwrap();
        assert_eq!(
            target.authority.as_deref(),
            Some("http://fn-1.fns.svc.example.org:9446")
        );
    }
}
