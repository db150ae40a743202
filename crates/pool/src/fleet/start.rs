//! Start of pods: times, number, and results.

use std::sync::Arc;

use runner_core::EvaluationError;

use super::{Fleet, Life, Pod};
use crate::{
    Action, Attempt, Create, Leave, StartFailure, Uid, agenda::Due, ledger::Step, pod_name,
    slot_name,
};

impl Fleet {
    /// Starts pods for waiting requests, or one pod for the warm set or a template change.
    pub(crate) fn scale(&mut self, step: &mut Step<'_>) {
        let census = self.census();
        if census.open > 0 {
            self.wants_one = false;
        }
        if self.in_background && census.starting == 0 {
            self.in_background = false;
            step.ledger.background.leave(self.id);
        }
        let settings = self.settings();
        let needed = match self.queue.len() {
            0 => 0,
            queued => (queued + census.in_flight)
                .div_ceil(settings.waitlist())
                .min(settings.pods()),
        };
        let wanted = usize::from(self.wants_one && !self.superseded).max(self.kept());
        // No request waits for these pods, so they start one after the other.
        let unasked = needed <= census.live
            && census.live < wanted
            && census.starting == 0
            && !step.ledger.draining;
        if needed <= census.live && !unasked {
            return;
        }
        if let Some(failure) = self.backoff.active(step.now) {
            let retry_at = failure.retry_at;
            if !failure.passing && census.live == 0 {
                let error = failure.error.clone().retry_in(retry_at.since(step.now));
                self.turn_away(step, &error, |_| true);
            }
            step.ledger
                .agenda
                .no_later(&mut self.wake, retry_at, Due::Fleet(self.id));
            return;
        }
        if unasked {
            if let Some(later) = self.backoff.unasked_after(step.now) {
                step.ledger
                    .agenda
                    .no_later(&mut self.wake, later, Due::Fleet(self.id));
                return;
            }
            let limit = step.ledger.limits.max_background_starts;
            if !step.ledger.background.enter(self.id, limit) {
                return;
            }
            self.in_background = true;
        }
        let more = if unasked { 1 } else { needed - census.live };
        for _ in 0..more {
            self.create(step);
        }
    }

    fn create(&mut self, step: &mut Step<'_>) {
        let mut number = 1;
        let slot = loop {
            let slot = slot_name(self.function.image(), number);
            if !step.ledger.names.contains_key(&slot) {
                break slot;
            }
            number += 1;
        };
        let name = pod_name(&slot, step.ledger.predecessors.last_in(&slot));
        let (now, ttl) = (step.now, self.settings().time_to_live());
        let reclaim_after = (now + ttl).to_next_second();
        let attempt = step.ledger.new_attempt();
        let mut pod = Pod::new(
            step.ledger.new_pod(),
            name.clone(),
            slot.clone(),
            self.template(step),
            now,
        );
        pod.attempt = Some(attempt);
        pod.last_used = Some(now);
        pod.asked = Some((reclaim_after, now));
        step.ledger.names.insert(name.clone(), self.id);
        step.ledger.names.insert(slot.clone(), self.id);
        step.ledger.counters.created += 1;
        step.out.push(Action::Create(Create {
            name,
            slot,
            attempt,
            function: Arc::clone(&self.function),
            template: pod.template.clone(),
            reclaim_after,
        }));
        self.pods.push(pod);
        self.plan(self.pods.len() - 1, step);
    }

    /// Records that the API server accepted a pod of this process.
    pub(crate) fn created(
        &mut self,
        attempt: Attempt,
        uid: &Uid,
        resource_version: &Arc<str>,
        step: &mut Step<'_>,
    ) {
        let Some(at) = self
            .pods
            .iter()
            .position(|pod| pod.attempt == Some(attempt))
        else {
            return;
        };
        let pod = &mut self.pods[at];
        if pod.uid.as_ref().is_some_and(|known| known != uid) {
            return;
        }
        pod.uid = Some(uid.clone());
        if pod.observed {
            // The pod observed under this name was made by this process after all.
            pod.foreign_use = None;
        } else {
            pod.resource_version = Some(Arc::clone(resource_version));
        }
        if pod.life == Life::Creating {
            pod.life = Life::Starting;
        }
        self.plan(at, step);
    }

    /// Removes a pod that could not be created, and backs off.
    pub(crate) fn start_failed(
        &mut self,
        attempt: Attempt,
        failure: &StartFailure,
        step: &mut Step<'_>,
    ) {
        let Some(at) = self
            .pods
            .iter()
            .position(|pod| pod.attempt == Some(attempt))
        else {
            return;
        };
        // The watch showed the pod in spite of the error, such as a time-out that was too short.
        if self.pods[at].life != Life::Creating || self.pods[at].uid.is_some() {
            return;
        }
        self.remove(at, step);
        match failure {
            StartFailure::Refused(error) => self.back_off(false, error.clone(), step),
            StartFailure::Passing(error) => self.back_off(true, error.clone(), step),
        }
        self.settle(step);
    }

    /// Handles a pod's answer to a health check.
    pub(crate) fn answered(&mut self, uid: &Uid, step: &mut Step<'_>) {
        if let Some(pod) = self.pods.iter().find(|pod| pod.is_uid(uid))
            && !matches!(pod.life, Life::Ready | Life::Failed)
        {
            let key = pod.key;
            self.open(key, step);
        }
    }

    /// Makes a pod ready and settles the fleet.
    pub(crate) fn open(&mut self, key: super::PodKey, step: &mut Step<'_>) {
        let Some(at) = self.index(key) else { return };
        self.become_ready(at, step);
        self.plan(at, step);
        self.settle(step);
    }

    /// Makes a pod ready and assigns waiting requests to it.
    ///
    /// The assignment precedes every decision about deletion, because the start may have taken
    /// longer than the TTL. A completed start counts as the first use, by the replica that created
    /// the pod.
    pub(crate) fn become_ready(&mut self, at: usize, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        let started = pod.is_starting();
        pod.enter(Life::Ready, step.now);
        pod.waits_for = None;
        if started && pod.last_used.is_some() {
            self.touch(at, step);
        } else if started {
            pod.foreign_use = Some(step.now);
        }
        self.dispatch(step);
    }

    /// Probes a pod that lost a call, turned unready, or is reported ready after it was given up as
    /// lost.
    ///
    /// The pod gets no requests until it answers.
    pub(crate) fn suspect(&mut self, at: usize, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        if !matches!(pod.life, Life::Ready | Life::Abandoned(Leave::Lost)) {
            return;
        }
        pod.enter(Life::Suspect, step.now);
        if let Some(uid) = pod.uid.clone() {
            step.out.push(Action::Probe {
                name: pod.name.clone(),
                uid,
            });
        }
        self.plan(at, step);
    }

    /// Gives up a pod that did not answer a probe.
    pub(crate) fn probe_failed(&mut self, uid: &Uid, step: &mut Step<'_>) {
        if let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid))
            && self.pods[at].life == Life::Suspect
        {
            self.abandon(at, Leave::Lost, "it does not answer", step);
            self.settle(step);
        }
    }

    /// Gives up a pod: its requests are lost, and it is deleted unless another replica uses it.
    pub(crate) fn abandon(&mut self, at: usize, why: Leave, detail: &str, step: &mut Step<'_>) {
        self.pods[at].enter(Life::Abandoned(why), step.now);
        if why == Leave::Lost {
            self.lost_before_use(at, detail, step);
        }
        self.take_back(at, detail, step);
        self.plan(at, step);
    }

    /// Takes back all requests of a pod that will not answer them.
    pub(crate) fn take_back(&mut self, at: usize, detail: &str, step: &mut Step<'_>) {
        let mut requests = std::mem::take(&mut self.pods[at].in_flight);
        let name = self.pods[at].name.clone();
        // Each request goes to the head of the queue, so the oldest is returned last.
        requests.sort_unstable();
        for request in requests.into_iter().rev() {
            self.come_back(request, name.as_str(), detail, step);
        }
    }

    /// Delays the next start if a pod failed between becoming ready and its first answer.
    ///
    /// The successor might fail in the same way again and again. Requests keep waiting: for them
    /// this is a lost pod, not a failed start.
    pub(crate) fn lost_before_use(&mut self, at: usize, detail: &str, step: &mut Step<'_>) {
        if self.pods[at].served == 0 {
            let error = self.pod_lost(self.pods[at].name.as_str(), detail, 0);
            self.back_off(true, error, step);
        }
    }

    /// Records a failed start and schedules the next attempt.
    ///
    /// After a transient failure, requests without a deadline that have waited longer than
    /// `Limits::patience` are rejected, so that they do not wait forever.
    pub(crate) fn back_off(&mut self, passing: bool, error: EvaluationError, step: &mut Step<'_>) {
        let (now, patience) = (step.now, step.ledger.limits.patience);
        if passing {
            self.turn_away(step, &error, |held| {
                held.deadline.is_none() && now.since(held.arrived) >= patience
            });
        }
        let failure = self
            .backoff
            .failed(now, passing, error, &step.ledger.limits);
        step.ledger.counters.starts_failed += 1;
        step.ledger
            .agenda
            .no_later(&mut self.wake, failure.retry_at, Due::Fleet(self.id));
    }

    /// Handles the fleet's own appointment: retries a start, or forgets a failure.
    pub(crate) fn look(&mut self, step: &mut Step<'_>) {
        self.wake = None;
        self.backoff.forget(step.now);
        if let Some(failure) = self.backoff.last() {
            let next = if step.now < failure.retry_at {
                failure.retry_at
            } else {
                failure.forget_at
            };
            step.ledger
                .agenda
                .no_later(&mut self.wake, next, Due::Fleet(self.id));
        }
        self.settle(step);
    }
}
