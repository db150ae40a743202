//! What the watch shows: pods of ours, pods of other replicas, pods that are gone.

use std::sync::Arc;

use super::{Fleet, Life, Parting, Pod};
use crate::{Leave, Observed, PodFailure, PodPhase, Uid, ledger::Step};

impl Fleet {
    /// A pod this fleet did not know: another replica's, or an earlier process's.
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

    /// A pod of this fleet, new to the watch or changed.
    pub(crate) fn observe(&mut self, at: usize, seen: Observed, step: &mut Step<'_>) {
        let version = self.template(step);
        let now = step.now;
        let pod = &mut self.pods[at];
        if pod.uid.is_none() {
            // Until the API server says that the pod is ours, it may be another replica's that
            // took the slot first.
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

    /// Kubernetes learns seconds after us that a pod is ready, so that it is not counts only once
    /// it was.
    fn seen_unready(&mut self, at: usize, waits_for: Option<Arc<str>>, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        pod.waits_for = waits_for;
        if std::mem::take(&mut pod.watch_ready) {
            self.suspect(at, step);
        }
    }

    /// Only the change to ready is news. A pod that lost a call and was ready all along has to
    /// answer its probe; one that did not answer it is asked again, for the news may be older than
    /// the loss.
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

    /// `concerns_next`: whether the next pod is expected to fail in the same way.
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
                // Another template's failure says nothing about the pods to come.
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

    /// Delays the next start if something else removed a pod before it served anyone: whatever
    /// removes pods as they appear would remove the next one as well.
    fn back_off_if_removed_unused(&mut self, at: usize, step: &mut Step<'_>) {
        let pod = &self.pods[at];
        let is_ours = pod.attempt.is_some() && pod.served == 0;
        if pod.is_live() && pod.parting == Parting::No && (pod.is_starting() || is_ours) {
            let error = self.pod_vanished(pod);
            self.back_off(true, error, step);
        }
    }

    /// A pod is no more.
    pub(crate) fn gone(&mut self, uid: &Uid, step: &mut Step<'_>) {
        let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid)) else {
            return;
        };
        self.back_off_if_removed_unused(at, step);
        self.take_back(at, "it was removed", step);
        self.remove(at, step);
        self.settle(step);
    }

    /// Another pod has the name of one that was merely asked for: the slot is taken.
    pub(crate) fn withdraw(&mut self, at: usize, taken: &Observed, step: &mut Step<'_>) {
        self.remove(at, step);
        self.settle_beside(taken, step);
    }

    /// Another pod has the name of one that was there: it must be gone.
    pub(crate) fn displace(&mut self, at: usize, taken: &Observed, step: &mut Step<'_>) {
        self.take_back(at, "it was replaced", step);
        self.remove(at, step);
        self.settle_beside(taken, step);
    }

    /// Settles while name and slot are kept for the pod that turned out to have them.
    fn settle_beside(&mut self, taken: &Observed, step: &mut Step<'_>) {
        for name in [&taken.name, &taken.slot] {
            step.ledger.names.insert(name.clone(), self.id);
        }
        self.settle(step);
    }

    /// A delete came to nothing.
    pub(crate) fn delete_failed(&mut self, uid: &Uid, conflict: bool, step: &mut Step<'_>) {
        let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid)) else {
            return;
        };
        let retry = step.now + step.ledger.limits.retry_backoff.1;
        let pod = &mut self.pods[at];
        let Parting::Asked(version) = &pod.parting else {
            return;
        };
        // The watch may have shown already what the delete ran into.
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
