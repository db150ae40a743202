//! The path of a request: arrival, queue, assignment to a pod, return from a lost pod.

use std::time::Duration;

use runner_core::EvaluationError;

use super::{Fleet, PodKey};
use crate::{
    Action, Assign, Outcome, Request, RequestId, Time, Waited,
    agenda::Due,
    ledger::{Held, Place, Step},
};

/// Minimum and maximum of the retry delay returned with a full queue.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

impl Fleet {
    /// Accepts a request, or rejects it at once.
    pub(crate) fn arrive(&mut self, request: &Request, step: &mut Step<'_>) {
        let now = step.now;
        let held = Held {
            fleet: self.id,
            arrived: now,
            deadline: request.deadline,
            place: Place::Queued(0),
            retries: 0,
            unready_mark: self.unready(now),
            lost: Duration::ZERO,
        };
        let refusal = if request.deadline.is_some_and(|deadline| deadline <= now) {
            Some(self.too_late(Waited::default()))
        } else if self.queue.len() >= step.ledger.limits.max_queue.max(1) {
            Some(self.queue_full(self.queue.len(), self.retry_delay()))
        } else {
            None
        };
        if let Some(error) = refusal {
            step.out.push(Action::Reject {
                request: request.id,
                error,
            });
            return;
        }
        step.ledger.requests.insert(request.id, held);
        let last = self
            .queue
            .last_key_value()
            .map_or(0, |(place, _)| place + 1);
        self.enqueue(request.id, last, step);
        self.settle(step);
    }

    /// Frees the place of a cancelled request.
    pub(crate) fn cancel(&mut self, request: RequestId, place: Place, step: &mut Step<'_>) {
        match place {
            Place::Queued(place) => {
                self.queue.remove(&place);
            }
            Place::On(key, _) => {
                if let Some(at) = self.index(key) {
                    self.pods[at].release(request);
                }
            }
        }
        self.settle(step);
    }

    /// Rejects a queued request whose deadline has passed.
    pub(crate) fn expire(&mut self, request: RequestId, place: i64, step: &mut Step<'_>) {
        self.queue.remove(&place);
        if let Some(held) = step.ledger.requests.get(&request) {
            let error = self.too_late(self.waited(held, step.now));
            step.reject(request, error);
        }
        self.settle(step);
    }

    /// Ends an assigned request that was answered, or retries it if its pod was lost.
    pub(crate) fn done(
        &mut self,
        request: RequestId,
        key: PodKey,
        outcome: &Outcome,
        step: &mut Step<'_>,
    ) {
        let Some(at) = self.index(key) else { return };
        let pod = &mut self.pods[at];
        pod.release(request);
        match outcome {
            Outcome::Answered => {
                pod.served += 1;
                pod.last_used = Some(step.now);
                self.backoff.reset();
                if let Some(Held {
                    place: Place::On(_, since),
                    ..
                }) = step.ledger.requests.remove(&request)
                {
                    self.pace = (self.pace * 7 + step.now.since(since)) / 8;
                }
            }
            Outcome::PodLost { detail } => {
                let name = pod.name.clone();
                self.suspect(at, step);
                self.come_back(request, name.as_str(), detail, step);
            }
        }
        self.settle(step);
    }

    /// Returns a request from a lost pod to the head of the queue, or rejects it after its last
    /// retry or deadline.
    pub(crate) fn come_back(
        &mut self,
        request: RequestId,
        pod: &str,
        detail: &str,
        step: &mut Step<'_>,
    ) {
        let now = step.now;
        let Some(held) = step.ledger.requests.get_mut(&request) else {
            return;
        };
        if let Place::On(_, since) = held.place {
            held.lost += now.since(since);
        }
        let in_time = held.deadline.is_none_or(|deadline| now < deadline);
        if held.retries < step.ledger.limits.max_retries && in_time {
            held.retries += 1;
            let first = self
                .queue
                .first_key_value()
                .map_or(0, |(place, _)| place - 1);
            self.enqueue(request, first, step);
        } else {
            let error = self.pod_lost(pod, detail, held.retries);
            step.reject(request, error);
        }
    }

    /// Assigns waiting requests to pods with room, in order of arrival.
    pub(crate) fn dispatch(&mut self, step: &mut Step<'_>) {
        if self.queue.is_empty() {
            return;
        }
        let room = self.room(step.now);
        while let Some(at) = self.pick(room) {
            let Some((_, request)) = self.queue.pop_first() else {
                return;
            };
            let expired = step
                .ledger
                .requests
                .get(&request)
                .is_none_or(|held| held.deadline.is_some_and(|deadline| deadline <= step.now));
            if !expired {
                self.assign(request, at, step);
            } else if let Some(held) = step.ledger.requests.get(&request) {
                let error = self.too_late(self.waited(held, step.now));
                step.reject(request, error);
            }
        }
    }

    /// Rejects the waiting requests for which `which` returns `true`.
    pub(crate) fn turn_away(
        &mut self,
        step: &mut Step<'_>,
        error: &EvaluationError,
        which: impl Fn(&Held) -> bool,
    ) {
        self.queue.retain(|_, request| {
            let leaves = step.ledger.requests.get(request).is_none_or(&which);
            if leaves {
                step.reject(*request, error.clone());
            }
            !leaves
        });
    }

    fn enqueue(&mut self, request: RequestId, place: i64, step: &mut Step<'_>) {
        self.queue.insert(place, request);
        if let Some(held) = step.ledger.requests.get_mut(&request) {
            held.place = Place::Queued(place);
            if let Some(deadline) = held.deadline {
                step.ledger.agenda.add(deadline, Due::Request(request));
            }
        }
    }

    fn assign(&mut self, request: RequestId, at: usize, step: &mut Step<'_>) {
        let Some(mut held) = step.ledger.requests.remove(&request) else {
            return;
        };
        step.unschedule(request, &held);
        let waited = self.waited(&held, step.now);
        let pod = &mut self.pods[at];
        let Some(uid) = pod.uid.clone() else { return };
        held.place = Place::On(pod.key, step.now);
        pod.in_flight.push(request);
        step.out.push(Action::Assign(Assign {
            request,
            name: pod.name.clone(),
            pod: uid,
            waited,
            retry: held.retries > 0,
        }));
        step.ledger.requests.insert(request, held);
        self.cursor = at + 1;
        self.touch(at, step);
    }

    /// Returns the least loaded pod with room; pods of equal load take turns.
    fn pick(&self, room: usize) -> Option<usize> {
        let count = self.pods.len();
        (0..count)
            .map(|turn| (self.cursor + turn) % count)
            .filter(|&at| self.pods[at].is_open() && self.pods[at].in_flight.len() < room)
            .min_by_key(|&at| self.pods[at].in_flight.len())
    }

    /// Returns the maximum number of requests on a pod.
    ///
    /// It is the waitlist while another pod may take the rest soon, and more once no other pod can
    /// be expected.
    fn room(&self, now: Time) -> usize {
        let settings = self.settings();
        let census = self.census();
        let more_to_come = census.open < census.live
            || (census.live < settings.pods() && self.backoff.active(now).is_none());
        if more_to_come {
            settings.waitlist()
        } else {
            settings.in_flight()
        }
    }

    fn waited(&self, held: &Held, now: Time) -> Waited {
        let total = now.since(held.arrived).saturating_sub(held.lost);
        let starting = self
            .unready(now)
            .saturating_sub(held.unready_mark)
            .min(total);
        Waited {
            queued: total - starting,
            starting,
            lost: held.lost,
        }
    }

    /// Estimates the time in which as many requests finish as are waiting now.
    fn retry_delay(&self) -> Duration {
        let open: usize = self.pods.iter().filter(|pod| pod.is_open()).count();
        if open == 0 {
            return Duration::from_secs(1).clamp(RETRY_AFTER.0, RETRY_AFTER.1);
        }
        let at_once = u32::try_from(open * self.settings().waitlist()).unwrap_or(u32::MAX);
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        (self.pace.saturating_mul(waiting) / at_once).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
    }
}
