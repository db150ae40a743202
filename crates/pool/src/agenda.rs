//! The scheduled checks of the pool.

use std::{collections::BTreeSet, time::Duration};

use crate::{RequestId, Time, fleet::FleetId, fleet::PodKey};

/// Minimum delay of a new appointment, whatever the configuration says.
///
/// An appointment at the present moment would become due and be made again without end.
const SMALLEST_STEP: Duration = Duration::from_millis(10);

/// Appointments, earliest first.
///
/// An owner has at most one appointment and stores its time.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    appointments: BTreeSet<(Time, Due)>,
    /// The earliest time of a new appointment.
    earliest: Time,
}

/// The subject of an appointment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The deadline of a queued request.
    Request(RequestId),
    Pod(FleetId, PodKey),
    Fleet(FleetId),
    /// The extensions collected so far are to be written.
    Extensions,
    /// The end of draining.
    Drained,
}

// === impl Agenda ===

impl Agenda {
    /// Sets the time of the event that is handled next.
    pub(crate) fn begin(&mut self, now: Time) {
        self.earliest = now + SMALLEST_STEP;
    }

    /// Returns the number of appointments.
    pub(crate) fn len(&self) -> usize {
        self.appointments.len()
    }

    pub(crate) fn add(&mut self, at: Time, due: Due) {
        self.appointments.insert((at, due));
    }

    pub(crate) fn remove(&mut self, at: Time, due: Due) {
        self.appointments.remove(&(at, due));
    }

    /// Moves the owner's only appointment to `at`, unless it is already earlier.
    ///
    /// An early check costs little and avoids moving the appointment on every use. An appointment
    /// in the past or at the present moment is delayed to the smallest step from now.
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

    /// Returns the later of `at` and the smallest step from now.
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
