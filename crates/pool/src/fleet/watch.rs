//! Observations of pods: of this process, of other replicas, and of pods that are gone.

use std::sync::Arc;

use super::{Fleet, Life, Parting, Pod};
use crate::{Leave, Observed, PodFailure, PodPhase, Uid, ledger::Step};

impl Fleet {
    /// Adopts a pod of another replica or of an earlier process.
    pub(crate) fn adopt(&mut self, seen: Observed, step: &mut Step<'_>) {
        let version = self.template(step);
        let mut pod = Pod::new(
            step.ledger.new_pod(),
            seen.name.clone(),
            seen.slot.clone(),
            seen.template.clone(),
            step.now,
        );
        pod.uid = Some(seen.uid.clone());
        pod.life = Life::Starting;
        pod.current = pod.template.serves_for(&version);
        pod.superseded = pod.template.is_older_than(&version);
        pod.has_other_wrapper = pod.template.has_other_wrapper(&version);
        pod.foreign_use = Some(step.now);
        step.ledger.names.insert(seen.name.clone(), self.id);
        step.ledger
            .names
            .entry(seen.slot.clone())
            .or_insert(self.id);
        step.ledger.counters.adopted += 1;
        self.pods.push(pod);
        self.observe(self.pods.len() - 1, seen, step);
    }

    /// Applies an observation to a pod of this fleet.
    pub(crate) fn observe(&mut self, at: usize, seen: Observed, step: &mut Step<'_>) {
        let version = self.template(step);
        let now = step.now;
        let pod = &mut self.pods[at];
        if pod.uid.is_none() {
            // Until the API server confirms that this process made the pod, it may belong to
            // another replica that took the slot first.
            pod.uid = Some(seen.uid);
            pod.foreign_use = Some(now);
        }
        let others = match (seen.reclaim_after, pod.asked) {
            (Some(value), Some((asked, _))) => value > asked && Some(value) != pod.reclaim_after,
            (Some(value), None) => Some(value) != pod.reclaim_after,
            (None, _) => false,
        };
        if others {
            pod.foreign_use = Some(now);
        }
        pod.observed = true;
        pod.reclaim_after = seen.reclaim_after;
        if matches!(&pod.parting, Parting::Conflicted(refused) if *refused != seen.resource_version)
        {
            pod.parting = Parting::No;
        }
        pod.resource_version = Some(seen.resource_version);
        if pod.template != seen.template {
            pod.current = seen.template.serves_for(&version);
            pod.superseded = seen.template.is_older_than(&version);
            pod.has_other_wrapper = seen.template.has_other_wrapper(&version);
            pod.template = seen.template;
        }
        if pod.life == Life::Creating {
            pod.life = Life::Starting;
        }
        match seen.phase {
            PodPhase::Starting(waits_for) => self.seen_unready(at, waits_for, step),
            PodPhase::Ready => self.seen_ready(at, step),
            PodPhase::Failed(failure) => self.seen_failed(at, &failure, true, step),
            PodPhase::FailedAvoidably(failure) => self.seen_failed(at, &failure, false, step),
            PodPhase::Deleting => self.seen_deleting(at, step),
        }
        self.plan(at, step);
        self.settle(step);
    }

    /// Suspects a pod that turned unready.
    ///
    /// Kubernetes reports readiness seconds after the announcement, so "not ready" counts only
    /// after the watch has shown the pod ready.
    fn seen_unready(&mut self, at: usize, waits_for: Option<Arc<str>>, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        pod.waits_for = waits_for;
        if std::mem::take(&mut pod.watch_ready) {
            self.suspect(at, step);
        }
    }

    /// Handles the change of a pod to ready; a repeated observation changes nothing.
    ///
    /// A pod that lost a call while the watch showed it ready must answer its probe. A pod that did
    /// not answer is probed again, because the observation may be older than the loss.
    fn seen_ready(&mut self, at: usize, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        if std::mem::replace(&mut pod.watch_ready, true) {
            return;
        }
        match pod.life {
            Life::Ready | Life::Failed => {}
            Life::Abandoned(Leave::Lost) => self.suspect(at, step),
            _ => self.become_ready(at, step),
        }
    }

    /// Handles the failure of a pod; `concerns_next` says whether the next pod is expected to fail
    /// in the same way.
    fn seen_failed(
        &mut self,
        at: usize,
        failure: &PodFailure,
        concerns_next: bool,
        step: &mut Step<'_>,
    ) {
        let was = self.pods[at].life;
        if was == Life::Failed {
            return;
        }
        self.pods[at].enter(Life::Failed, step.now);
        let detail = format!("{}: {}", failure.reason, failure.message);
        match was {
            Life::Creating | Life::Starting => {
                let error = self.pod_failed(&self.pods[at], failure);
                // A failure of another template does not affect future pods.
                if self.pods[at].current && concerns_next {
                    self.back_off(false, error, step);
                }
            }
            _ => self.lost_before_use(at, &detail, step),
        }
        self.take_back(at, &detail, step);
    }

    fn seen_deleting(&mut self, at: usize, step: &mut Step<'_>) {
        self.back_off_if_removed_unused(at, step);
        self.pods[at].parting = Parting::Seen;
    }

    /// Delays the next start if a pod was removed from outside before it served a request.
    ///
    /// The cause, such as a controller that removes pods as they appear, would remove the next pod
    /// too.
    fn back_off_if_removed_unused(&mut self, at: usize, step: &mut Step<'_>) {
        let pod = &self.pods[at];
        let is_ours = pod.attempt.is_some() && pod.served == 0;
        if pod.is_live() && pod.parting == Parting::No && (pod.is_starting() || is_ours) {
            let error = self.pod_vanished(pod);
            self.back_off(true, error, step);
        }
    }

    /// Removes a pod that no longer exists.
    pub(crate) fn gone(&mut self, uid: &Uid, step: &mut Step<'_>) {
        let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid)) else {
            return;
        };
        self.back_off_if_removed_unused(at, step);
        self.take_back(at, "it was removed", step);
        self.remove(at, step);
        self.settle(step);
    }

    /// Removes a pod whose creation was requested, because another pod has taken its name.
    pub(crate) fn withdraw(&mut self, at: usize, taken: &Observed, step: &mut Step<'_>) {
        self.remove(at, step);
        self.settle_beside(taken, step);
    }

    /// Removes a pod whose name another pod has now, which proves that it is gone.
    pub(crate) fn displace(&mut self, at: usize, taken: &Observed, step: &mut Step<'_>) {
        self.take_back(at, "it was replaced", step);
        self.remove(at, step);
        self.settle_beside(taken, step);
    }

    /// Settles while name and slot are reserved for the pod that has them.
    fn settle_beside(&mut self, taken: &Observed, step: &mut Step<'_>) {
        for name in [&taken.name, &taken.slot] {
            step.ledger.names.insert(name.clone(), self.id);
        }
        self.settle(step);
    }

    /// Handles a delete that was refused or failed.
    pub(crate) fn delete_failed(&mut self, uid: &Uid, conflict: bool, step: &mut Step<'_>) {
        let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid)) else {
            return;
        };
        let retry = step.now + step.ledger.limits.retry_backoff.1;
        let pod = &mut self.pods[at];
        let Parting::Asked(version) = &pod.parting else {
            return;
        };
        // The watch may already have shown the change that caused the conflict.
        pod.parting = match &pod.resource_version {
            Some(known) if conflict && known == version => Parting::Conflicted(Arc::clone(version)),
            _ => Parting::No,
        };
        if !conflict {
            pod.delete_after = Some(retry);
        }
        self.plan(at, step);
        self.settle(step);
    }
}
