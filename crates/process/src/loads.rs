//! Which programs compute for so long that they want a core to themselves.
//!
//! While one process ends and the next one starts, a core has nothing to do. Beside programs of a
//! few milliseconds a second process makes good use of that. A long computation has few such
//! moments, and is slowed down by the caches that it shares. Programs do the same thing again and
//! again, so what a process took says what the next one will.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::Program;

/// What ends sooner is not worth a core of its own, whatever it did before.
const QUICK: Duration = Duration::from_millis(12);

/// Who computed for less than this part of its time waited rather, and not for a core.
const AT_WORK: u32 = 8;

/// What an evaluation asks of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// It is soon over, or waits for something else.
    Light,
    /// It computes for long.
    Heavy,
}

/// What is known of programs: those that are heavy.
#[derive(Debug, Default)]
pub(crate) struct Loads(Mutex<HashSet<Arc<Program>>>);

// === impl Load ===

impl Load {
    /// What an evaluation was, given how long it ran and, if that was long, for how much of it it
    /// computed. One in between says nothing.
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

    /// Learns from an evaluation.
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
    fn a_long_computation_is_heavy_and_a_long_wait_is_not() {
        assert_eq!(Load::of(ms(60), Some(ms(50))), Some(Load::Heavy));
        // Four of them on two cores, with others.
        assert_eq!(Load::of(ms(250), Some(ms(50))), Some(Load::Heavy));
        assert_eq!(Load::of(ms(900), Some(ms(50))), Some(Load::Light));
    }

    #[test]
    fn a_quick_one_is_light_and_one_in_between_says_nothing() {
        assert_eq!(Load::of(ms(6), None), Some(Load::Light));
        assert_eq!(Load::of(ms(40), None), None);
    }

    #[test]
    fn each_program_has_its_own() {
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
