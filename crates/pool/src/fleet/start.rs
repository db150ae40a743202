//! Starting pods: when, how many, and what becomes of it.

use std::sync::Arc;

use runner_core::EvaluationError;

use super::{Fleet, Life, Parting, Pod};
use crate::{
    Action, Attempt, Create, Leave, PodName, StartFailure, Uid, agenda::Due, ledger::Step,
    pod_name, slot_name,
};

impl Fleet {
    /// Starts pods for requests that wait, or one where more are wanted anyhow.
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
        // One after the other: nobody waits for these.
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

    /// The API server accepted a pod of ours.
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
            // What the watch showed under this name was ours after all.
            pod.foreign_use = None;
        } else {
            pod.resource_version = Some(Arc::clone(resource_version));
        }
        if pod.life == Life::Creating {
            pod.life = Life::Starting;
        }
        self.plan(at, step);
    }

    /// A pod could not be created.
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
        // An error after which the watch showed the pod all the same: a time-out that was too short.
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

    /// A pod announced itself with the token of an attempt. It must be the pod that attempt made,
    /// and still be waited for.
    pub(crate) fn announced(
        &mut self,
        name: &PodName,
        uid: &Uid,
        attempt: Attempt,
        step: &mut Step<'_>,
    ) {
        let known = self.pods.iter_mut().find(|pod| {
            pod.attempt == Some(attempt)
                && pod.name == *name
                && pod.is_starting()
                && pod.parting == Parting::No
                && pod.uid.as_ref().is_none_or(|known| known == uid)
        });
        let Some(pod) = known else {
            step.ledger.counters.announcements_refused += 1;
            return;
        };
        pod.uid = Some(uid.clone());
        let key = pod.key;
        self.open(key, step);
    }

    /// A pod answered when it was knocked at.
    pub(crate) fn answered(&mut self, uid: &Uid, step: &mut Step<'_>) {
        if let Some(pod) = self.pods.iter().find(|pod| pod.is_uid(uid))
            && !matches!(pod.life, Life::Ready | Life::Failed)
        {
            let key = pod.key;
            self.open(key, step);
        }
    }

    /// A pod is ready for work.
    pub(crate) fn open(&mut self, key: super::PodKey, step: &mut Step<'_>) {
        let Some(at) = self.index(key) else { return };
        self.become_ready(at, step);
        self.plan(at, step);
        self.settle(step);
    }

    /// A pod is ready, and is given what waits before anybody asks whether it may go: its start may
    /// have taken longer than its TTL. That it started is its first use, by whoever asked for it.
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

    /// A pod lost a call or turned unready, or is said to be ready after it was given up for lost:
    /// it gets no work until it answers a probe.
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

    /// A pod did not answer a probe.
    pub(crate) fn probe_failed(&mut self, uid: &Uid, step: &mut Step<'_>) {
        if let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid))
            && self.pods[at].life == Life::Suspect
        {
            self.abandon(at, Leave::Lost, "it does not answer", step);
            self.settle(step);
        }
    }

    /// Gives a pod up. Requests on it are lost, and the pod goes unless another replica uses it.
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
        // Each goes before the first, so the oldest comes back last.
        requests.sort_unstable();
        for request in requests.into_iter().rev() {
            self.come_back(request, name.as_str(), detail, step);
        }
    }

    /// A pod that became ready and then failed before it served anyone may do so again and again:
    /// its successor is not started at once. Requests keep waiting: theirs is a lost pod.
    pub(crate) fn lost_before_use(&mut self, at: usize, detail: &str, step: &mut Step<'_>) {
        if self.pods[at].served == 0 {
            let error = self.pod_lost(self.pods[at].name.as_str(), detail, 0);
            self.back_off(true, error, step);
        }
    }

    /// Notes a failed start. Those who wait without a deadline do not wait forever.
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

    /// The fleet's own appointment: a start may be tried again, or a failure be forgotten.
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
