//! Who may run now: as many processes as keep the cores busy, the others in the order they came.
//!
//! Functions are short and CPU-bound: many more processes than cores make everyone slower, and of
//! those that compute for long each has a core to itself. One that takes long (it waits for
//! something, or hangs) steps aside into a wider lane after a moment, so a few slow functions never
//! hold up the many quick ones.

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

/// After this long an evaluation counts as slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Slow evaluations that may run beside the quick ones, for each core.
const SLOW_PER_CORE: usize = 16;

/// Light evaluations at a core, so that it does not idle: some of them are being started, or wait
/// for their input to arrive or their output to leave.
const LIGHT_PER_CORE: u32 = 2;

/// The gate in front of the cores.
#[derive(Clone, Debug)]
pub struct Admission {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// Held by the first of those that wait.
    first: Arc<Mutex<()>>,
    waiting: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    max_waiting: usize,
    parallel: usize,
    /// What a heavy evaluation takes of `quick`.
    heavy: u32,
}

/// A place at a core; given back when dropped.
pub(crate) struct Place {
    permit: OwnedSemaphorePermit,
    slow: Arc<Semaphore>,
    _running: Counted,
    _shown: Gauge,
}

/// Too many evaluations wait already.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

/// One of those that a number counts; no longer when dropped.
struct Counted(Arc<AtomicUsize>);

// === impl Admission ===

impl Admission {
    /// A gate for `parallel` processes at once and `max_waiting` evaluations behind it; 0 stands for
    /// as many processes as keep the cores busy.
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

    /// As many as this process has cores, by its cgroup (v1 or v2) and affinity.
    #[must_use]
    pub fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// How many processes run at once, at most.
    #[must_use]
    pub fn parallel(&self) -> usize {
        self.parallel
    }

    /// How many processes run now, the slow ones beside the quick.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
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
    /// Who is first in the queue asks what it needs: those before it may have taught us.
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

    /// Whether a core is free and nobody waits for it.
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
    /// And how many were counted before.
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
        let mut first = admission.enter(|| Load::Light).await.unwrap();
        assert!(!admission.has_room());
        first.step_aside();
        let _second = admission.enter(|| Load::Light).await.unwrap();
        assert_eq!((admission.running(), admission.waiting()), (2, 0));
    }

    #[tokio::test]
    async fn a_heavy_evaluation_has_a_core_to_itself() {
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
    async fn who_says_how_many_gets_so_many() {
        let admission = Admission::new(2, 8);
        let _one = admission.enter(|| Load::Heavy).await.unwrap();
        let _other = admission.enter(|| Load::Heavy).await.unwrap();
        assert_eq!((admission.running(), admission.has_room()), (2, false));
    }

    #[tokio::test]
    async fn beyond_the_queue_evaluations_are_refused() {
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
    async fn one_that_stops_waiting_frees_its_place_in_the_queue() {
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
