//! Admission control: admits as many evaluations as keep the cores busy and queues the others in
//! arrival order.
//!
//! Functions are short and CPU-bound: many more processes than cores make all of them slower. An
//! evaluation that computes for long gets a core to itself. An evaluation that takes longer than
//! [`SLOW_EVALUATION_THRESHOLD`], because it waits for something or hangs, changes to a second,
//! larger set of permits, so that a few slow functions never block the many quick ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::{
    load::Load,
    metrics::{self, UpDownCounterGuard},
};

/// Run time (2 s) after which an evaluation is slow.
pub(crate) const SLOW_EVALUATION_THRESHOLD: Duration = Duration::from_secs(2);

/// Number of permits for slow evaluations per permit for quick ones.
const SLOW_PERMITS_PER_PERMIT: usize = 16;

/// Number of light evaluations per core.
///
/// More than one, so that the core is not idle while some of them are being started or wait for
/// their input to arrive or their output to be read.
const LIGHT_EVALUATIONS_PER_CORE: u32 = 2;

/// The admission control of an engine. Clones share the permits.
#[derive(Clone, Debug)]
pub struct Admission {
    quick_permits: Arc<Semaphore>,
    slow_permits: Arc<Semaphore>,
    /// Lock held by the first evaluation in the queue.
    queue_head: Arc<Mutex<()>>,
    waiting: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    max_waiting: usize,
    parallel: usize,
    /// Number of quick permits that a heavy evaluation takes.
    permits_per_heavy_evaluation: u32,
}

/// The permit of one evaluation, released when dropped.
pub(crate) struct AdmissionPermit {
    permit: OwnedSemaphorePermit,
    slow_permits: Arc<Semaphore>,
    _running: CounterGuard,
    _running_metric: UpDownCounterGuard,
}

/// The error that the queue has no room for another evaluation.
#[derive(Debug)]
pub(crate) struct QueueFull {
    /// Number of evaluations already waiting.
    pub(crate) waiting: usize,
}

/// A guard that subtracts 1 from a counter when it is dropped.
struct CounterGuard(Arc<AtomicUsize>);

// === impl Admission ===

impl Admission {
    /// Creates permits for `parallel` processes at once, and a queue of `max_waiting` evaluations.
    ///
    /// If `parallel` is 0, there are as many permits as keep the cores busy.
    #[must_use]
    pub fn new(parallel: usize, max_waiting: usize) -> Self {
        let (parallel, permits_per_heavy_evaluation) = match parallel {
            0 => (
                Self::cores() * LIGHT_EVALUATIONS_PER_CORE as usize,
                LIGHT_EVALUATIONS_PER_CORE,
            ),
            configured => (configured, 1),
        };
        Self {
            quick_permits: Arc::new(Semaphore::new(parallel)),
            slow_permits: Arc::new(Semaphore::new(parallel * SLOW_PERMITS_PER_PERMIT)),
            queue_head: Arc::default(),
            waiting: Arc::default(),
            running: Arc::default(),
            max_waiting,
            parallel,
            permits_per_heavy_evaluation,
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
    /// changed the recorded load of its program.
    pub(crate) async fn acquire(
        &self,
        load: impl Fn() -> Load,
    ) -> Result<AdmissionPermit, QueueFull> {
        let permits_needed = || match load() {
            Load::Light => 1,
            Load::Heavy => self.permits_per_heavy_evaluation,
        };
        if let Ok(_queue_head) = self.queue_head.try_lock()
            && let Ok(permit) = self
                .quick_permits
                .clone()
                .try_acquire_many_owned(permits_needed())
        {
            return Ok(self.admit(permit));
        }
        let (waiting_before, _waiting_guard) = CounterGuard::increment(&self.waiting);
        if waiting_before >= self.max_waiting {
            return Err(QueueFull {
                waiting: waiting_before,
            });
        }
        let _queued_metric = UpDownCounterGuard::increment(&metrics::instruments().queued);
        let _queue_head = self.queue_head.lock().await;
        let acquired = self
            .quick_permits
            .clone()
            .acquire_many_owned(permits_needed())
            .await;
        Ok(self.admit(acquired.expect("the semaphore is never closed")))
    }

    /// Returns whether a permit is free and no evaluation waits for it.
    pub(crate) fn has_free_permit(&self) -> bool {
        self.quick_permits.available_permits() > 0
    }

    /// Counts a running evaluation for as long as its permit is held.
    fn admit(&self, permit: OwnedSemaphorePermit) -> AdmissionPermit {
        AdmissionPermit {
            permit,
            slow_permits: self.slow_permits.clone(),
            _running: CounterGuard::increment(&self.running).1,
            _running_metric: UpDownCounterGuard::increment(&metrics::instruments().running),
        }
    }
}

// === impl CounterGuard ===

impl CounterGuard {
    /// Adds 1 to a counter. Returns the value before, and the guard that subtracts it again.
    fn increment(counter: &Arc<AtomicUsize>) -> (usize, Self) {
        let before = counter.fetch_add(1, Ordering::Relaxed);
        (before, Self(counter.clone()))
    }
}

impl Drop for CounterGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl AdmissionPermit ===

impl AdmissionPermit {
    /// Exchanges the permit for a slow one, which admits the next evaluation.
    ///
    /// Keeps the quick permit if no slow one is free.
    pub(crate) fn exchange_for_slow_permit(&mut self) {
        if let Ok(permit) = self.slow_permits.clone().try_acquire_owned() {
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
        let mut first = admission.acquire(|| Load::Light).await.unwrap();
        assert!(!admission.has_free_permit());
        first.exchange_for_slow_permit();
        let _second = admission.acquire(|| Load::Light).await.unwrap();
        assert_eq!((admission.running(), admission.waiting()), (2, 0));
    }

    #[tokio::test]
    async fn admits_one_heavy_evaluation_per_core() {
        let admission = Admission::new(0, 8);
        let cores = Admission::cores();
        let mut permits = Vec::new();
        for _ in 0..cores {
            permits.push(admission.acquire(|| Load::Heavy).await.unwrap());
        }
        assert_eq!(admission.running(), cores);
        assert!(!admission.has_free_permit());
        {
            let next = std::pin::pin!(admission.acquire(|| Load::Light));
            assert!(poll_once(next).is_none());
        }
        permits.pop();
        let _light = admission.acquire(|| Load::Light).await.unwrap();
        let _another = admission.acquire(|| Load::Light).await.unwrap();
        assert_eq!(admission.running(), cores + 1);
        assert!(!admission.has_free_permit());
    }

    #[tokio::test]
    async fn admits_the_configured_number_of_heavy_evaluations() {
        let admission = Admission::new(2, 8);
        let _one = admission.acquire(|| Load::Heavy).await.unwrap();
        let _other = admission.acquire(|| Load::Heavy).await.unwrap();
        assert_eq!(
            (admission.running(), admission.has_free_permit()),
            (2, false)
        );
    }

    #[tokio::test]
    async fn refuses_evaluations_beyond_the_queue_limit() {
        let admission = Admission::new(1, 0);
        let first = admission.acquire(|| Load::Light).await.unwrap();
        assert_eq!(
            admission
                .acquire(|| Load::Light)
                .await
                .err()
                .unwrap()
                .waiting,
            0
        );
        drop(first);
        admission.acquire(|| Load::Light).await.unwrap();
    }

    #[tokio::test]
    async fn leaves_the_queue_when_the_future_is_dropped() {
        let admission = Admission::new(1, 1);
        let first = admission.acquire(|| Load::Light).await.unwrap();
        {
            let waiting = admission.acquire(|| Load::Light);
            let mut waiting = std::pin::pin!(waiting);
            assert!(poll_once(waiting.as_mut()).is_none());
            assert!(admission.acquire(|| Load::Light).await.is_err());
            assert_eq!((admission.running(), admission.waiting()), (1, 1));
        }
        assert_eq!(admission.waiting(), 0);
        drop(first);
        admission.acquire(|| Load::Light).await.unwrap();
    }

    fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
