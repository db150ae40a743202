//! Deletion of pods: times, reasons, and respect for the use by other replicas.

use std::sync::Arc;

use super::{Census, Fleet, Life, Parting, Pod, PodKey};
use crate::{
    Action, Delete, Extension, Leave, Time, Uid,
    agenda::Due,
    ledger::{Ledger, Step},
};

impl Fleet {
    /// Deletes a pod if its time has come, or else schedules the next check.
    pub(crate) fn plan(&mut self, at: usize, step: &mut Step<'_>) {
        if let Some(answer) = self.awaits_delete(at, step) {
            let due = Due::Pod(self.id, self.pods[at].key);
            step.ledger
                .agenda
                .no_later(&mut self.pods[at].wake, answer, due);
            return;
        }
        let census = self.census();
        let leaves = self.leaves(at, &census, step.ledger);
        if let Some((when, why)) = leaves
            && when <= step.now
        {
            self.delete(at, why, step);
            return;
        }
        let limits = &step.ledger.limits;
        let pod = &self.pods[at];
        let limit = match pod.life {
            Life::Creating | Life::Starting => Some(pod.since + limits.ready_timeout),
            Life::Suspect => Some(pod.since + limits.probe_timeout),
            _ if !pod.in_flight.is_empty() || pod.overlong => {
                Some(step.now + limits.step(self.settings().time_to_live()))
            }
            _ if self.is_kept(at) => Some(self.renewal(at, step)),
            _ => None,
        };
        let next = leaves.map(|(when, _)| when).into_iter().chain(limit).min();
        if let Some(next) = next {
            let due = Due::Pod(self.id, pod.key);
            step.ledger
                .agenda
                .no_later(&mut self.pods[at].wake, next, due);
        }
    }

    /// Plans all pods, unless all of them are clearly wanted.
    pub(crate) fn review(&mut self, step: &mut Step<'_>) {
        let most = self.settings().pods();
        let plain = !self.superseded
            && self.pods.len() <= most
            && self
                .pods
                .iter()
                .all(|pod| pod.current && pod.parting == Parting::No);
        if !plain {
            self.plan_all(step);
        }
    }

    pub(crate) fn plan_all(&mut self, step: &mut Step<'_>) {
        for at in 0..self.pods.len() {
            self.plan(at, step);
        }
    }

    /// Handles the appointment of a pod.
    pub(crate) fn look_at(&mut self, key: PodKey, step: &mut Step<'_>) {
        let Some(at) = self.index(key) else { return };
        let now = step.now;
        let pod = &mut self.pods[at];
        pod.wake = None;
        if let Some(answer) = self.awaits_delete(at, step) {
            if now < answer {
                self.plan(at, step);
                return;
            }
            // The result of the delete was never reported.
            self.pods[at].parting = Parting::No;
        }
        let pod = &self.pods[at];
        let limits = &step.ledger.limits;
        let (ready, probe) = (limits.ready_timeout, limits.probe_timeout);
        match pod.life {
            Life::Creating | Life::Starting if pod.since + ready <= now => self.too_slow(at, step),
            Life::Suspect if pod.since + probe <= now => {
                self.abandon(at, Leave::Lost, "it does not answer", step);
            }
            _ => {
                let used = !pod.in_flight.is_empty() || pod.overlong;
                if used || (self.is_kept(at) && self.renewal(at, step) <= now) {
                    self.note_if_behind(at, step);
                }
                self.plan(at, step);
            }
        }
        self.settle(step);
    }

    /// Returns the time until which the result of a pending delete is awaited.
    fn awaits_delete(&self, at: usize, step: &Step<'_>) -> Option<Time> {
        let pod = &self.pods[at];
        let waits = matches!(pod.parting, Parting::Asked(_) | Parting::Conflicted(_));
        waits.then(|| pod.delete_sent + step.ledger.limits.ready_timeout)
    }

    fn too_slow(&mut self, at: usize, step: &mut Step<'_>) {
        let error = self.pod_too_slow(&self.pods[at], step.ledger.limits.ready_timeout);
        if self.pods[at].is_live() {
            self.back_off(false, error, step);
        }
        if self.pods[at].uid.is_some() {
            self.abandon(at, Leave::TooSlow, "it was not ready in time", step);
        } else {
            self.remove(at, step);
        }
    }

    /// Returns when and why a pod is to be deleted if nothing else happens.
    fn leaves(&self, at: usize, census: &Census, ledger: &Ledger) -> Option<(Time, Leave)> {
        let pod = &self.pods[at];
        if pod.parting != Parting::No || pod.uid.is_none() || pod.resource_version.is_none() {
            return None;
        }
        let not_before = pod.delete_after.unwrap_or_default();
        if pod.life == Life::Failed {
            return Some((not_before, Leave::Failed));
        }
        // While draining, the pods are left to the next runner; a pod in use is never deleted.
        if ledger.draining || !pod.in_flight.is_empty() {
            return None;
        }
        let settings = self.settings();
        let quiet = ledger.limits.quiet(settings.time_to_live());
        let unused_by_others = pod
            .foreign_use
            .map_or(not_before, |used| (used + quiet).max(not_before));
        let unused_here = pod.last_used.unwrap_or_default();
        let early = if let Life::Abandoned(why) = pod.life {
            Some((unused_by_others, why))
        } else if pod.superseded && (census.open > 0 || pod.last_used.is_none()) {
            // A pod that this process used stays until its successor is ready; a pod that it never
            // used has no successor to wait for.
            Some((unused_by_others, Leave::OldTemplate))
        } else if self.superseded && !pod.is_starting() {
            Some((unused_by_others.max(unused_here + quiet), Leave::OldDigest))
        } else if census.live > settings.pods() && self.is_surplus(at) {
            Some((unused_by_others, Leave::Surplus))
        } else {
            None
        };
        if pod.current && matches!(pod.life, Life::Creating | Life::Starting | Life::Suspect) {
            return early;
        }
        if self.is_kept(at) {
            return early;
        }
        let kept = pod.promised().unwrap_or(pod.born + settings.time_to_live());
        let used = pod
            .last_used
            .map_or(kept, |used| (used + settings.time_to_live()).max(kept));
        let idle = (used.max(unused_by_others), Leave::Idle);
        Some(early.map_or(idle, |early| if early.0 <= idle.0 { early } else { idle }))
    }

    /// Returns whether the pod's slot is beyond the maximum.
    fn is_surplus(&self, at: usize) -> bool {
        self.pods[at].is_live() && self.live_before(at) >= self.settings().pods()
    }

    /// Returns whether the pod is one that a warm function keeps, used or not.
    ///
    /// A pod with another wrapper expires like any other, so that an upgrade reaches functions that
    /// are never called.
    fn is_kept(&self, at: usize) -> bool {
        let (kept, pod) = (self.kept(), &self.pods[at]);
        kept > 0 && pod.is_live() && !pod.has_other_wrapper && self.live_before(at) < kept
    }

    /// Returns the number of live pods in lower slots, which is the same for every replica.
    fn live_before(&self, at: usize) -> usize {
        let rank = self.pods[at].rank();
        let before = |other: &&Pod| other.is_live() && other.rank() < rank;
        self.pods.iter().filter(before).count()
    }

    /// Returns when `reclaim-after` of a kept pod is to be written again.
    ///
    /// That is at half the TTL, so that other replicas and other runners always see a time in the
    /// future.
    fn renewal(&self, at: usize, step: &Step<'_>) -> Time {
        let ttl = self.settings().time_to_live();
        let pod = &self.pods[at];
        let left = pod.promised().unwrap_or_default().since(step.now);
        let again = step.ledger.limits.step(ttl);
        if pod.noted {
            return step.now + again;
        }
        let due = step.now + left.saturating_sub(ttl / 2);
        // Written recently: the watch will show the value soon, or the write will be reported as
        // failed.
        pod.asked.map_or(due, |(_, when)| due.max(when + again))
    }

    fn delete(&mut self, at: usize, why: Leave, step: &mut Step<'_>) {
        let pod = &mut self.pods[at];
        let (Some(uid), Some(version)) = (pod.uid.clone(), pod.resource_version.clone()) else {
            return;
        };
        pod.parting = Parting::Asked(Arc::clone(&version));
        pod.delete_sent = step.now;
        step.ledger.counters.deleted += 1;
        step.out.push(Action::Delete(Delete {
            name: pod.name.clone(),
            uid,
            resource_version: version,
            why,
        }));
        let due = Due::Pod(self.id, pod.key);
        step.ledger.agenda.clear(&mut pod.wake, due);
        let answer = step.now + step.ledger.limits.ready_timeout;
        step.ledger.agenda.no_later(&mut pod.wake, answer, due);
    }

    /// Forgets a pod and frees its name.
    pub(crate) fn remove(&mut self, at: usize, step: &mut Step<'_>) {
        let mut pod = self.pods.remove(at);
        if at < self.cursor {
            self.cursor -= 1;
        }
        step.ledger
            .agenda
            .clear(&mut pod.wake, Due::Pod(self.id, pod.key));
        if let Some(uid) = pod.uid.take() {
            step.ledger.predecessors.note(&pod.slot, uid);
        }
        for name in [&pod.name, &pod.slot] {
            let taken = |other: &Pod| other.name == *name || other.slot == *name;
            let ours = step.ledger.names.get(name) == Some(&self.id);
            if ours && !self.pods.iter().any(taken) {
                step.ledger.names.remove(name);
            }
        }
    }

    /// Records that a pod is used.
    pub(crate) fn touch(&mut self, at: usize, step: &mut Step<'_>) {
        self.note_if_behind(at, step);
        let again = step.now + step.ledger.limits.step(self.settings().time_to_live());
        let pod = &mut self.pods[at];
        pod.last_used = Some(step.now);
        // A call may outlast the TTL: other replicas must see in time that the pod is used.
        step.ledger
            .agenda
            .no_later(&mut pod.wake, again, Due::Pod(self.id, pod.key));
    }

    /// Schedules an earlier `reclaim-after` for pods whose annotation exceeds a shortened TTL.
    ///
    /// The value is written like an extension, because other replicas keep a pod until the time in
    /// its annotation, and may extend it again.
    pub(crate) fn curtail(&mut self, step: &mut Step<'_>) {
        let latest = (step.now + self.settings().time_to_live()).to_next_second();
        for at in 0..self.pods.len() {
            let pod = &mut self.pods[at];
            pod.overlong = pod.promised() > Some(latest);
            if pod.overlong {
                self.note_if_behind(at, step);
            }
        }
    }

    fn note_if_behind(&mut self, at: usize, step: &mut Step<'_>) {
        let (now, ttl) = (step.now, self.settings().time_to_live());
        let behind = step.ledger.limits.step(ttl);
        let pod = &mut self.pods[at];
        // A written value counts for a while even if the watch does not show it: the write may have
        // failed, but is not repeated with every request.
        let written = pod
            .asked
            .filter(|(_, when)| now < *when + behind)
            .map(|(value, _)| value);
        let known = pod.reclaim_after.max(written).unwrap_or_default();
        let is_behind = (now + ttl).to_next_second().since(known) >= behind;
        if !pod.noted && (is_behind || pod.overlong) {
            pod.noted = true;
            step.ledger.note_extension(now, self.id, pod.key);
        }
    }

    /// Returns the extension recorded for a pod, if the pod still exists and the extension has an
    /// effect.
    pub(crate) fn extension(&mut self, key: PodKey, now: Time) -> Option<Extension> {
        let ttl = self.settings().time_to_live();
        let at = self.index(key)?;
        let kept = self.is_kept(at);
        let pod = &mut self.pods[at];
        pod.noted = false;
        // A shortened TTL counts from now, whenever the pod was used last.
        let used = if pod.in_flight.is_empty() && !pod.overlong && !kept {
            pod.last_used?
        } else {
            now
        };
        let reclaim_after = (used + ttl).to_next_second();
        // An extension that is handled long after it was recorded may be in the past; the TTL then
        // decides.
        let helps =
            reclaim_after > now && (pod.overlong || pod.reclaim_after < Some(reclaim_after));
        if !helps || pod.parting == Parting::Seen {
            return None;
        }
        let uid = pod.uid.clone()?;
        pod.overlong = false;
        pod.asked = Some((reclaim_after, now));
        Some(Extension {
            name: pod.name.clone(),
            uid,
            reclaim_after,
        })
    }

    /// Restores the state before a write of `reclaim-after` that failed, and schedules the next
    /// write.
    pub(crate) fn extend_failed(&mut self, uid: &Uid, step: &mut Step<'_>) {
        let Some(at) = self.pods.iter().position(|pod| pod.is_uid(uid)) else {
            return;
        };
        let retry = step.now + step.ledger.limits.retry_backoff.1;
        let pod = &mut self.pods[at];
        if let Some((value, _)) = pod.asked.take() {
            // Only the failed write would have corrected a `reclaim-after` that exceeds a shortened
            // TTL.
            pod.overlong |= pod.reclaim_after > Some(value);
        }
        let due = Due::Pod(self.id, pod.key);
        step.ledger.agenda.no_later(&mut pod.wake, retry, due);
    }
}
