//! Who may run now: as many processes as keep the cores busy, the others in the order they came.
//!
//! Functions are short and CPU-bound: many more processes than cores make everyone slower. One that
//! takes long (it waits for something, or hangs) steps aside into a wider lane after a moment, so a
//! few slow functions never hold up the many quick ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::{self, Gauge};

/// After this long an evaluation counts as slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Slow evaluations that may run beside the quick ones, for each core.
const SLOW_PER_CORE: usize = 16;

/// The gate in front of the cores.
#[derive(Clone, Debug)]
pub struct Admission {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    parallel: usize,
}

/// A place at a core; given back when dropped.
pub(crate) struct Place {
    permit: OwnedSemaphorePermit,
    slow: Arc<Semaphore>,
    _running: Gauge,
}

/// Too many evaluations wait already.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

struct Waiting<'a>(&'a AtomicUsize);

// === impl Admission ===

impl Admission {
    /// A gate for `parallel` processes at once and `max_waiting` evaluations behind it.
    #[must_use]
    pub fn new(parallel: usize, max_waiting: usize) -> Self {
        let parallel = parallel.max(1);
        Self {
            quick: Arc::new(Semaphore::new(parallel)),
            slow: Arc::new(Semaphore::new(parallel * SLOW_PER_CORE)),
            waiting: Arc::new(AtomicUsize::new(0)),
            max_waiting,
            parallel,
        }
    }

    /// As many as this process has cores, by its cgroup (v1 or v2) and affinity.
    #[must_use]
    pub fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// So many processes at once that no core idles: twice as many as there are cores, since some
    /// of them are being started or waiting for their input to arrive or their output to leave.
    #[must_use]
    pub fn busy_cores() -> usize {
        Self::cores() * 2
    }

    /// How many processes run at once.
    #[must_use]
    pub fn parallel(&self) -> usize {
        self.parallel
    }

    /// How many processes run now, the slow ones beside the quick.
    #[must_use]
    pub fn running(&self) -> usize {
        let quick = self.parallel - self.quick.available_permits().min(self.parallel);
        let lane = self.parallel * SLOW_PER_CORE;
        quick + (lane - self.slow.available_permits().min(lane))
    }

    /// How many evaluations wait for a place now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many may.
    #[must_use]
    pub fn max_waiting(&self) -> usize {
        self.max_waiting
    }

    /// Waits for a place, in arrival order. Dropping the future gives up the place in the queue.
    pub(crate) async fn enter(&self) -> Result<Place, Full> {
        if let Ok(permit) = self.quick.clone().try_acquire_owned() {
            return Ok(self.place(permit));
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.max_waiting {
            return Err(Full { waiting: before });
        }
        let _queued = Gauge::enter(&metrics::instruments().queued);
        let acquired = self.quick.clone().acquire_owned().await;
        Ok(self.place(acquired.expect("the semaphore is never closed")))
    }

    /// Whether a core is free and nobody waits for it.
    pub(crate) fn has_room(&self) -> bool {
        self.quick.available_permits() > 0
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        let running = Gauge::enter(&metrics::instruments().running);
        Place {
            permit,
            slow: self.slow.clone(),
            _running: running,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Place ===

impl Place {
    /// Moves to the slow lane if there is room, and so lets the next one in.
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
    async fn a_slow_evaluation_lets_the_next_one_in() {
        let admission = Admission::new(1, 8);
        let mut first = admission.enter().await.unwrap();
        assert!(!admission.has_room());
        first.step_aside();
        let _second = admission.enter().await.unwrap();
        assert_eq!((admission.running(), admission.waiting()), (2, 0));
    }

    #[tokio::test]
    async fn beyond_the_queue_evaluations_are_refused() {
        let admission = Admission::new(1, 0);
        let first = admission.enter().await.unwrap();
        assert_eq!(admission.enter().await.err().unwrap().waiting, 0);
        drop(first);
        admission.enter().await.unwrap();
    }

    #[tokio::test]
    async fn one_that_stops_waiting_frees_its_place_in_the_queue() {
        let admission = Admission::new(1, 1);
        let first = admission.enter().await.unwrap();
        {
            let waiting = admission.enter();
            let mut waiting = std::pin::pin!(waiting);
            assert!(futures_poll_once(waiting.as_mut()).is_none());
            assert!(admission.enter().await.is_err());
            assert_eq!((admission.running(), admission.waiting()), (1, 1));
        }
        assert_eq!(admission.waiting(), 0);
        drop(first);
        admission.enter().await.unwrap();
    }

    fn futures_poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
