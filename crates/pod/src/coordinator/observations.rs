//! Decisions about the starts of pods: observations, time limits, announcements and knocks.

use std::net::IpAddr;

use runner_cluster::PodObservation;
use runner_pool::{Event, PodFailure, PodPhase, Time, Uid};

use super::{
    AnnouncementOutcome, Coordinator, Due, Effect, PodRecord, Readiness, StartStep,
    input::Observation,
};

impl Coordinator {
    pub(super) fn observe(
        &mut self,
        now: Time,
        observation: Observation,
        effects: &mut Vec<Effect>,
    ) {
        match observation {
            Observation::Pod(observation) => self.pod_observed(now, *observation, effects),
            Observation::PodGone { name, uid } => {
                self.forget_pod(now, &uid, effects);
                self.pass(now, Event::PodGone { name, uid }, effects);
            }
            Observation::Pods(present) => {
                let gone: Vec<Uid> = self
                    .pods
                    .iter()
                    .filter(|(uid, pod)| pod.observed.is_some() && !present.contains(*uid))
                    .map(|(uid, _)| uid.clone())
                    .collect();
                for uid in gone {
                    self.forget_pod(now, &uid, effects);
                }
                self.pass(now, Event::Listed(present), effects);
                self.pods_listed = true;
            }
            Observation::Service(service) => self.service_observed(service, effects),
            Observation::ServiceGone(name) => self.service_gone(now, &name, effects),
            Observation::Services(present) => {
                self.services_listed(now, &present, effects);
                self.services_listed = true;
            }
            Observation::Template(Ok(template)) => {
                self.template_error = None;
                self.has_template = true;
                self.pass(now, Event::TemplateChanged(template), effects);
            }
            Observation::Template(Err(error)) => self.template_error = Some(error),
        }
        self.update_readiness(now, effects);
    }

    /// Publishes the extent to which the cluster is known, which never decreases.
    fn update_readiness(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if !self.pods_listed || !self.services_listed {
            return;
        }
        let readiness = if self.has_template || self.template_error.is_some() {
            Readiness::Ready
        } else {
            Readiness::TemplatesUnknown
        };
        if self.readiness < readiness {
            self.readiness = readiness;
            effects.push(Effect::Readiness(readiness));
            if readiness == Readiness::Ready {
                self.schedule(now, Due::Scan);
            }
        }
    }

    pub(super) fn pod_observed(
        &mut self,
        now: Time,
        observation: PodObservation,
        effects: &mut Vec<Effect>,
    ) {
        let observed = &observation.observed;
        let uid = observed.uid.clone();
        let is_new = !self.pods.contains_key(&uid);
        if is_new {
            self.check_slot_later(now, observed.slot.as_str());
        }
        let pod = self
            .pods
            .entry(uid.clone())
            .or_insert_with(|| PodRecord::new(observed.name.clone(), observed.slot.clone()));
        let was_unschedulable = pod.unschedulable.is_some();
        let was_without_address = pod.without_address.is_some();
        pod.update(now, &observation);
        let is_unschedulable = pod.unschedulable.is_some() && !was_unschedulable;
        let is_without_address = pod.without_address.is_some() && !was_without_address;
        if is_unschedulable {
            self.schedule(
                now + self.options.unschedulable_timeout,
                Due::Start(uid.clone()),
            );
        }
        if is_without_address {
            self.schedule(now + self.address_timeout, Due::Start(uid.clone()));
        }
        if observation.scheduled {
            self.reach(now, &uid, StartStep::Scheduled, effects);
        }
        if observation.address.is_some() {
            self.reach(now, &uid, StartStep::Address, effects);
        }
        if matches!(observation.observed.phase, PodPhase::Ready) {
            self.reach(now, &uid, StartStep::Ready, effects);
        }
        self.pass(now, Event::Pod(observation.observed), effects);
        self.consider_knocking(&uid, effects);
        self.consider_moving(&uid, effects);
    }

    /// Gives up a pod whose start takes too long.
    ///
    /// A pod without a node fails with the scheduler's message. A pod whose node has not begun to
    /// start it fails only if another injection may help.
    pub(super) fn check_start(&mut self, now: Time, uid: &Uid, effects: &mut Vec<Effect>) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.is_awaited()) else {
            return;
        };
        if let Some((failure, since)) = &pod.unschedulable {
            if now.since(*since) >= self.options.unschedulable_timeout {
                let phase = PodPhase::Failed(failure.clone());
                self.fail(now, uid, phase, effects);
            }
        } else if let Some(since) = pod.without_address
            && now.since(since) >= self.address_timeout
        {
            effects.push(Effect::GiveUpInjection {
                uid: uid.clone(),
                injection: pod.injection,
            });
        }
    }

    /// Gives up a pod that its node has not begun to start, because the next pod is made
    /// differently.
    pub(super) fn injection_given_up(&mut self, now: Time, uid: &Uid, effects: &mut Vec<Effect>) {
        let phase = PodPhase::FailedAvoidably(PodFailure {
            reason: "NotStarted".into(),
            message: "its node has not begun to start it".into(),
        });
        self.fail(now, uid, phase, effects);
    }

    fn fail(&mut self, now: Time, uid: &Uid, phase: PodPhase, effects: &mut Vec<Effect>) {
        let pod = self.pods.get(uid);
        if let Some(mut observed) = pod.and_then(|pod| pod.observed.clone()) {
            observed.phase = phase;
            self.pass(now, Event::Pod(observed), effects);
        }
    }

    /// Calls a pod at the address from its announcement.
    pub(super) fn listens(
        &mut self,
        now: Time,
        uid: &Uid,
        address: IpAddr,
        effects: &mut Vec<Effect>,
    ) -> AnnouncementOutcome {
        self.reach(now, uid, StartStep::Listening, effects);
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.is_awaited()) else {
            return AnnouncementOutcome::Late;
        };
        pod.address.get_or_insert(address);
        // The first health checks were too early; the pause between them may be long by now.
        pod.stop_knocking(uid, effects);
        self.consider_knocking(uid, effects);
        AnnouncementOutcome::Accepted
    }

    /// Knocks at a pod that has not answered yet, as soon as its address is known.
    pub(super) fn consider_knocking(&mut self, uid: &Uid, effects: &mut Vec<Effect>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        if !pod.is_awaited() {
            pod.stop_knocking(uid, effects);
        } else if !pod.knocking {
            let service = self.services.get(pod.slot.as_str());
            let domain = &self.options.service_domain;
            let targets = pod.targets(self.options.connect, service, domain);
            if let Some(target) = targets.into_iter().next() {
                pod.knocking = true;
                self.connect(uid, target, effects);
                effects.push(Effect::Knock(uid.clone()));
            }
        }
    }

    /// Handles the answer of a pod that was knocked at.
    pub(super) fn knocked(&mut self, now: Time, uid: &Uid, effects: &mut Vec<Effect>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.stop_knocking(uid, effects);
        if std::mem::replace(&mut pod.answered, true) {
            return;
        }
        let name = pod.name.clone();
        self.reach(now, uid, StartStep::Ready, effects);
        let uid = uid.clone();
        self.pass(now, Event::Ready { name, uid }, effects);
    }
}
