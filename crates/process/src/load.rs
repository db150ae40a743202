//! The load of programs: a program that computes for long gets a core to itself.
//!
//! A core is idle while one process ends and the next one starts. With programs of a few
//! milliseconds, a second process per core uses this time. A long computation has few such
//! gaps, and is slowed down by sharing the caches. A program usually does the same work every time,
//! so the load of one process predicts that of the next.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::Program;

/// Run time (12 ms) below which an evaluation is light, whatever the recorded load of its program.
const MAX_LIGHT_RUN_TIME: Duration = Duration::from_millis(12);

/// Divisor (8) of the run time: an evaluation is heavy if its CPU time is at least 1/8 of its run
/// time.
///
/// With less CPU time it mostly waited for something other than a core.
const HEAVY_CPU_TIME_DIVISOR: u32 = 8;

/// The demand of an evaluation for CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// The evaluation ends soon, or waits for something other than a core.
    Light,
    /// The evaluation computes for long.
    Heavy,
}

/// The programs whose last classified evaluation was heavy.
#[derive(Debug, Default)]
pub(crate) struct HeavyPrograms(Mutex<HashSet<Arc<Program>>>);

// === impl Load ===

impl Load {
    /// Classifies an evaluation by its run time and, if it was long-running, its CPU time.
    ///
    /// Returns `None` if the evaluation was neither quick nor long-running.
    fn classify(run_time: Duration, cpu_time: Option<Duration>) -> Option<Self> {
        match cpu_time {
            Some(cpu_time) if cpu_time * HEAVY_CPU_TIME_DIVISOR >= run_time => Some(Self::Heavy),
            Some(_) => Some(Self::Light),
            None => (run_time < MAX_LIGHT_RUN_TIME).then_some(Self::Light),
        }
    }
}

// === impl HeavyPrograms ===

impl HeavyPrograms {
    /// Returns the recorded load of a program; [`Load::Light`] if none is recorded.
    pub(crate) fn load_of(&self, program: &Arc<Program>) -> Load {
        if self.lock().contains(program) {
            Load::Heavy
        } else {
            Load::Light
        }
    }

    /// Updates the load of a program after an evaluation.
    pub(crate) fn record(
        &self,
        program: &Arc<Program>,
        run_time: Duration,
        cpu_time: Option<Duration>,
    ) {
        match Load::classify(run_time, cpu_time) {
            Some(Load::Heavy) => self.lock().insert(program.clone()),
            Some(Load::Light) => self.lock().remove(program),
            None => false,
        };
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Arc<Program>>> {
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
        assert_eq!(Load::classify(ms(60), Some(ms(50))), Some(Load::Heavy));
        // Four such evaluations on two cores, beside others.
        assert_eq!(Load::classify(ms(250), Some(ms(50))), Some(Load::Heavy));
        assert_eq!(Load::classify(ms(900), Some(ms(50))), Some(Load::Light));
    }

    #[test]
    fn classifies_a_quick_evaluation_as_light_and_ignores_a_longer_one() {
        assert_eq!(Load::classify(ms(6), None), Some(Load::Light));
        assert_eq!(Load::classify(ms(40), None), None);
    }

    #[test]
    fn keeps_the_load_of_each_program_separately() {
        let programs = HeavyPrograms::default();
        let [one, other] = ["/one", "/other"].map(|path| Arc::new(Program::new(path)));
        programs.record(&one, ms(60), Some(ms(60)));
        assert_eq!(
            (programs.load_of(&one), programs.load_of(&other)),
            (Load::Heavy, Load::Light)
        );
        programs.record(&one, ms(5), None);
        assert_eq!(programs.load_of(&one), Load::Light);
    }
}
