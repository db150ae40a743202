//! Admission control: as many processes as keep the cores busy; other evaluations queue in arrival
//! order.
//!
//! Functions are short and CPU-bound: many more processes than cores make all of them slower. An
//! evaluation that computes for long gets a core to itself. An evaluation that takes longer than
//! [`PATIENCE`], because it waits for something or hangs, changes to a second, larger set of
//! permits, so that a few slow functions never block the many quick ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::{
    loads::Load,
    metrics::{self, Gauge},
};

/// Run time (2 s) after which an evaluation counts as slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Number of slow evaluations per permit that may run beside the quick ones.
const SLOW_PER_CORE: usize = 16;

/// Number of light evaluations per core.
///
/// More than one, so that the core is not idle while some of them are being started or wait for
/// their input to arrive or their output to be read.
const LIGHT_PER_CORE: u32 = 2;

/// The admission control of an engine. Clones share the permits.
#[derive(Clone, Debug)]
pub struct Admission {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// Lock held by the first evaluation in the queue.
    first: Arc<Mutex<()>>,
    waiting: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    max_waiting: usize,
    parallel: usize,
    /// Number of `quick` permits that a heavy evaluation takes.
    heavy: u32,
}

/// The permit of one evaluation, released when dropped.
pub(crate) struct Place {
    permit: OwnedSemaphorePermit,
    slow: Arc<Semaphore>,
    _running: Counted,
    _shown: Gauge,
}

/// The error of a full queue.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

/// One unit of a counter, subtracted when dropped.
struct Counted(Arc<AtomicUsize>);

// === impl Admission ===

impl Admission {
    /// Creates permits for `parallel` processes at once, and a queue of `max_waiting` evaluations.
    ///
    /// If `parallel` is 0, there are as many permits as keep the cores busy.
    #[must_use]
    pub fn new(parallel: usize, max_waiting: usize) -> Self {
        let (parallel, heavy) = match parallel {
            0 => (Self::cores() * LIGHT_PER_CORE as usize, LIGHT_PER_CORE),
            given => (given, 1),
        };
        Self {
            quick: Arc::new(Semaphore::new(parallel)),
            slow: Arc::new(Semaphore::new(parallel * SLOW_PER_CORE)),
            first: Arc::default(),
            waiting: Arc::default(),
            running: Arc::default(),
            max_waiting,
            parallel,
            heavy,
        }
    }

    /// Returns the number of cores of this process, by its cgroup (v1 or v2) and affinity.
    #[must_use]
    pub fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Returns the maximum number of processes at once, not counting slow ones.
    #[must_use]
    pub fn parallel(&self) -> usize {
        self.parallel
    }

    /// Returns the number of processes running now, quick and slow.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the number of evaluations waiting for a permit now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of evaluations that wait for a permit.
    #[must_use]
    pub fn max_waiting(&self) -> usize {
        self.max_waiting
    }

    /// Waits for a permit, in arrival order. Dropping the future leaves the queue.
    ///
    /// `load` is called when the evaluation is first in the queue: evaluations before it may have
    /// changed the known load of its program.
    pub(crate) async fn enter(&self, load: impl Fn() -> Load) -> Result<Place, Full> {
        let share = || match load() {
            Load::Light => 1,
            Load::Heavy => self.heavy,
        };
        if let Ok(_first) = self.first.try_lock()
            && let Ok(permit) = self.quick.clone().try_acquire_many_owned(share())
        {
            return Ok(self.place(permit));
        }
        let (before, _waiting) = Counted::by(&self.waiting);
        if before >= self.max_waiting {
            return Err(Full { waiting: before });
        }
        let _queued = Gauge::enter(&metrics::instruments().queued);
        let _first = self.first.lock().await;
        let acquired = self.quick.clone().acquire_many_owned(share()).await;
        Ok(self.place(acquired.expect("the semaphore is never closed")))
    }

    /// Returns whether a core is free and no evaluation waits for it.
    pub(crate) fn has_room(&self) -> bool {
        self.quick.available_permits() > 0
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        Place {
            permit,
            slow: self.slow.clone(),
            _running: Counted::by(&self.running).1,
            _shown: Gauge::enter(&metrics::instruments().running),
        }
    }
}

// === impl Counted ===

impl Counted {
    /// Counts one more; also returns the number before.
    fn by(number: &Arc<AtomicUsize>) -> (usize, Self) {
        let before = number.fetch_add(1, Ordering::Relaxed);
        (before, Self(number.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Place ===

impl Place {
    /// Exchanges the permit for a slow one if there is one, which admits the next evaluation.
    pub(crate) fn step_aside(&mut self) {
        if let Ok(permit) = self.slow.clone().try_acquire_owned() {
            self.permit = permit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn admits_the_next_evaluation_when_one_is_slow() {
        let admission = Admission::new(1, 8);
        let mut first = admission.enter(|| Load::Light).await.unwrap();
        assert!(!admission.has_room());
        first.step_aside();
        let _second = admission.enter(|| Load::Light).await.unwrap();
        assert_eq!((admission.running(), admission.waiting()), (2, 0));
    }

    #[tokio::test]
    async fn gives_a_heavy_evaluation_a_core_to_itself() {
        let admission = Admission::new(0, 8);
        let cores = Admission::cores();
        let mut places = Vec::new();
        for _ in 0..cores {
            places.push(admission.enter(|| Load::Heavy).await.unwrap());
        }
        assert_eq!(admission.running(), cores);
        assert!(!admission.has_room());
        {
            let next = std::pin::pin!(admission.enter(|| Load::Light));
            assert!(futures_poll_once(next).is_none());
        }
        places.pop();
        let _light = admission.enter(|| Load::Light).await.unwrap();
        let _another = admission.enter(|| Load::Light).await.unwrap();
        assert_eq!(admission.running(), cores + 1);
        assert!(!admission.has_room());
    }

    #[tokio::test]
    async fn admits_the_configured_number_of_heavy_evaluations() {
        let admission = Admission::new(2, 8);
        let _one = admission.enter(|| Load::Heavy).await.unwrap();
        let _other = admission.enter(|| Load::Heavy).await.unwrap();
        assert_eq!((admission.running(), admission.has_room()), (2, false));
    }

    #[tokio::test]
    async fn refuses_evaluations_beyond_the_queue_limit() {
        let admission = Admission::new(1, 0);
        let first = admission.enter(|| Load::Light).await.unwrap();
        assert_eq!(
            admission.enter(|| Load::Light).await.err().unwrap().waiting,
            0
        );
        drop(first);
        admission.enter(|| Load::Light).await.unwrap();
    }

    #[tokio::test]
    async fn leaves_the_queue_when_the_future_is_dropped() {
        let admission = Admission::new(1, 1);
        let first = admission.enter(|| Load::Light).await.unwrap();
        {
            let waiting = admission.enter(|| Load::Light);
            let mut waiting = std::pin::pin!(waiting);
            assert!(futures_poll_once(waiting.as_mut()).is_none());
            assert!(admission.enter(|| Load::Light).await.is_err());
            assert_eq!((admission.running(), admission.waiting()), (1, 1));
        }
        assert_eq!(admission.waiting(), 0);
        drop(first);
        admission.enter(|| Load::Light).await.unwrap();
    }

    fn futures_poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
