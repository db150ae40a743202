//! Due work: appointments, collected extensions, and background starts in turn.

use super::{Pool, draining};
use crate::{Action, Time, agenda::Due, bound::Bound, ledger::Place};

impl Pool {
    /// Handles the appointments that are due.
    pub(super) fn tick(&mut self, now: Time, out: &mut Vec<Action>) {
        // Every handler makes its next appointment for a later time.
        let mut bound = Bound::new("a tick", self.ledger.agenda.len());
        while self.ledger.agenda.is_due(now)
            && bound.admits()
            && let Some(due) = self.ledger.agenda.pop()
        {
            match due {
                Due::Request(request) => {
                    if let Some(held) = self.ledger.requests.get(&request)
                        && let Place::Queued(place) = held.place
                    {
                        self.with(held.fleet, now, out, |fleet, step| {
                            fleet.expire(request, place, step);
                        });
                    }
                }
                Due::Pod(id, key) => {
                    self.with(id, now, out, |fleet, step| fleet.look_at(key, step));
                }
                Due::Fleet(id) => self.with(id, now, out, |fleet, step| fleet.look(step)),
                Due::Extensions => self.extend(now, out),
                Due::Drained => self.with_all(now, out, |fleet, step| {
                    fleet.turn_away(step, &draining(), |_| true);
                }),
            }
        }
    }

    fn extend(&mut self, now: Time, out: &mut Vec<Action>) {
        let noted = self.ledger.take_extensions();
        let extensions: Vec<_> = noted
            .into_iter()
            .filter_map(|(id, key)| self.fleets.get_mut(&id)?.extension(key, now))
            .collect();
        if !extensions.is_empty() {
            out.push(Action::Extend(extensions));
        }
    }

    /// Lets waiting fleets start pods in the background as other fleets finish.
    pub(super) fn take_turns(&mut self, now: Time, out: &mut Vec<Action>) {
        let limit = self.ledger.limits.max_background_starts;
        let waiting = self.ledger.background.waiting();
        let mut bound = Bound::new("starting pods in turn", 2 * waiting);
        while self.ledger.background.has_turn(limit)
            && bound.admits()
            && let Some(id) = self.ledger.background.next()
        {
            self.with(id, now, out, |fleet, step| fleet.settle(step));
        }
    }
}
