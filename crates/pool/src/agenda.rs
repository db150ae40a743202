//! What is to be looked at when.

use std::{collections::BTreeSet, time::Duration};

use crate::{RequestId, Time, fleet::FleetId, fleet::PodKey};

/// The shortest time to the next look at a pod or a function, whatever the configuration says:
/// an appointment at the present moment would be kept and made again without end.
const SMALLEST_STEP: Duration = Duration::from_millis(10);

/// Appointments, earliest first. An owner has at most one and remembers when it is.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    appointments: BTreeSet<(Time, Due)>,
    /// The earliest moment for a new appointment.
    earliest: Time,
}

/// Who or what is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A queued request's deadline.
    Request(RequestId),
    Pod(FleetId, PodKey),
    Fleet(FleetId),
    /// Extensions that were gathered.
    Extensions,
    /// The end of draining.
    Drained,
}

// === impl Agenda ===

impl Agenda {
    /// Notes the time of the event that is handled next.
    pub(crate) fn begin(&mut self, now: Time) {
        self.earliest = now + SMALLEST_STEP;
    }

    /// Number of appointments.
    pub(crate) fn len(&self) -> usize {
        self.appointments.len()
    }

    pub(crate) fn add(&mut self, at: Time, due: Due) {
        self.appointments.insert((at, due));
    }

    pub(crate) fn remove(&mut self, at: Time, due: Due) {
        self.appointments.remove(&(at, due));
    }

    /// Moves the owner's one appointment to `at`, unless it is earlier already: being looked at
    /// too early costs little, and saves moving it on every use. An appointment in the past or at
    /// the present moment is made for the smallest step later.
    pub(crate) fn no_later(&mut self, slot: &mut Option<Time>, at: Time, due: Due) {
        let at = self.not_before(at);
        match *slot {
            Some(known) if known <= at => return,
            Some(known) => self.remove(known, due),
            None => {}
        }
        self.add(at, due);
        *slot = Some(at);
    }

    pub(crate) fn clear(&mut self, slot: &mut Option<Time>, due: Due) {
        if let Some(at) = slot.take() {
            self.remove(at, due);
        }
    }

    /// Returns `at`, or the smallest step from now if that is later.
    pub(crate) fn not_before(&self, at: Time) -> Time {
        at.max(self.earliest)
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.appointments.first().map(|(at, _)| *at)
    }

    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    pub(crate) fn pop(&mut self) -> Option<Due> {
        self.appointments.pop_first().map(|(_, due)| due)
    }
}
