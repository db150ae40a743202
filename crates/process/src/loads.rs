//! Programs that compute for so long that they should have a core to themselves.
//!
//! A core is idle while one process ends and the next one starts. With programs of a few
//! milliseconds, a second process per core uses this time well. A long computation has few such
//! gaps, and is slowed down by sharing the caches. A program usually does the same work every time,
//! so the load of one process predicts that of the next.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::Program;

/// Run time (12 ms) below which an evaluation is light, whatever the program's load was before.
const QUICK: Duration = Duration::from_millis(12);

/// Divisor of the run time: an evaluation with less CPU time than 1/8 of its run time mostly waited
/// for something other than a core.
const AT_WORK: u32 = 8;

/// The demand of an evaluation for CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// The evaluation ends soon, or waits for something other than a core.
    Light,
    /// The evaluation computes for long.
    Heavy,
}

/// The programs that are known to be heavy.
#[derive(Debug, Default)]
pub(crate) struct Loads(Mutex<HashSet<Arc<Program>>>);

// === impl Load ===

impl Load {
    /// Classifies an evaluation by its run time and, if it was long-running, its CPU time.
    ///
    /// Returns `None` if the evaluation was neither quick nor long-running.
    fn of(ran: Duration, computed: Option<Duration>) -> Option<Self> {
        match computed {
            Some(computed) if computed * AT_WORK >= ran => Some(Self::Heavy),
            Some(_) => Some(Self::Light),
            None => (ran < QUICK).then_some(Self::Light),
        }
    }
}

// === impl Loads ===

impl Loads {
    pub(crate) fn of(&self, program: &Arc<Program>) -> Load {
        if self.heavy().contains(program) {
            Load::Heavy
        } else {
            Load::Light
        }
    }

    /// Updates the load of a program after an evaluation.
    pub(crate) fn learn(&self, program: &Arc<Program>, ran: Duration, computed: Option<Duration>) {
        match Load::of(ran, computed) {
            Some(Load::Heavy) => self.heavy().insert(program.clone()),
            Some(Load::Light) => self.heavy().remove(program),
            None => false,
        };
    }

    fn heavy(&self) -> MutexGuard<'_, HashSet<Arc<Program>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn classifies_a_long_computation_as_heavy_but_not_a_long_wait() {
        assert_eq!(Load::of(ms(60), Some(ms(50))), Some(Load::Heavy));
        // Four such evaluations on two cores, beside others.
        assert_eq!(Load::of(ms(250), Some(ms(50))), Some(Load::Heavy));
        assert_eq!(Load::of(ms(900), Some(ms(50))), Some(Load::Light));
    }

    #[test]
    fn classifies_a_quick_evaluation_as_light_and_ignores_a_longer_one() {
        assert_eq!(Load::of(ms(6), None), Some(Load::Light));
        assert_eq!(Load::of(ms(40), None), None);
    }

    #[test]
    fn keeps_the_load_of_each_program_separately() {
        let loads = Loads::default();
        let [one, other] = ["/one", "/other"].map(|path| Arc::new(Program::new(path)));
        loads.learn(&one, ms(60), Some(ms(60)));
        assert_eq!(
            (loads.of(&one), loads.of(&other)),
            (Load::Heavy, Load::Light)
        );
        loads.learn(&one, ms(5), None);
        assert_eq!(loads.of(&one), Load::Light);
    }
}
