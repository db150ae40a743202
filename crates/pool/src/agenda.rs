//! What is to be looked at when.

use std::collections::BTreeSet;

use crate::{RequestId, Time, fleet::FleetId, fleet::PodKey};

/// Appointments, earliest first. An owner has at most one and remembers when it is.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    appointments: BTreeSet<(Time, Due)>,
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
    pub(crate) fn add(&mut self, at: Time, due: Due) {
        self.appointments.insert((at, due));
    }

    pub(crate) fn remove(&mut self, at: Time, due: Due) {
        self.appointments.remove(&(at, due));
    }

    /// Moves the owner's one appointment to `at`, unless it is earlier already: being looked at
    /// too early costs little, and saves moving it on every use.
    pub(crate) fn no_later(&mut self, slot: &mut Option<Time>, at: Time, due: Due) {
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

    pub(crate) fn next(&self) -> Option<Time> {
        self.appointments.first().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Due> {
        let (at, _) = self.appointments.first()?;
        if *at > now {
            return None;
        }
        self.appointments.pop_first().map(|(_, due)| due)
    }
}
