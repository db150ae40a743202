//! A cache of lookups: one lookup at a time per key, results until they may have changed, failures
//! for a short time.
//!
//! A result that may have changed is still returned, and checked in the background, so that only
//! the first caller waits for a registry.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use moka::{Expiry, future::Cache};
use runner_core::ImageReference;

use crate::{
    RegistryError,
    metrics::{LookupResult, Metrics},
};

mod recent;

use recent::RecentEntries;

/// Maximum delay (30 s) before a check is repeated that failed because the registry was
/// unreachable.
const MAX_CHECK_RETRY_DELAY: Duration = Duration::from_secs(30);

/// A cache of lookups, with one lookup at a time per key.
pub(crate) struct LookupCache<K, V> {
    /// Results that were read recently; never failures, because those expire.
    recent: Arc<RecentEntries<K, Arc<Entry<V>>>>,
    /// All results and failures.
    entries: Cache<K, Arc<Entry<V>>>,
    ttl: Duration,
    /// Start of the clock that [`Entry::check_at`] refers to.
    clock: Instant,
    metrics: Metrics,
}

struct Entry<V> {
    outcome: Result<V, RegistryError>,
    /// Time of the next check, in milliseconds of the cache's clock.
    check_at: AtomicU64,
    being_checked: AtomicBool,
}

/// Expiry of failures after a fixed time; results do not expire.
struct FailuresExpire(Duration);

// === impl LookupCache ===

impl<K, V> LookupCache<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + PartialEq + Send + Sync + 'static,
{
    pub(crate) fn new(
        capacity: u64,
        ttl: Duration,
        failure_ttl: Duration,
        metrics: Metrics,
    ) -> Self {
        let entries = Cache::builder()
            .max_capacity(capacity)
            .expire_after(FailuresExpire(failure_ttl))
            .build();
        Self {
            recent: Arc::new(RecentEntries::new(
                usize::try_from(capacity).unwrap_or(usize::MAX),
            )),
            entries,
            ttl,
            clock: Instant::now(),
            metrics,
        }
    }

    /// Returns the result for a key, from the cache or by calling `load`.
    ///
    /// `load` gets the known result if that only needs a check. A `fixed` result never changes and
    /// is never checked. A lookup continues when its caller stops waiting, for the next caller.
    pub(crate) async fn get<F, L>(
        &self,
        key: &K,
        fixed: bool,
        wait: Wait<'_>,
        load: F,
    ) -> Result<V, RegistryError>
    where
        F: FnOnce(Option<V>) -> L,
        L: Future<Output = Result<V, RegistryError>> + Send + 'static,
    {
        if let Some(entry) = self.recent.get(key) {
            return self.cached(key, &entry, load);
        }
        if let Some(entry) = self.entries.get(key).await {
            if entry.outcome.is_ok() {
                self.recent.put(key.clone(), Arc::clone(&entry));
            }
            return self.cached(key, &entry, load);
        }
        self.metrics.lookup(LookupResult::Miss);
        let check_at = if fixed {
            u64::MAX
        } else {
            self.later(self.ttl)
        };
        let (entries, key, metrics) = (self.entries.clone(), key.clone(), self.metrics.clone());
        let loading = load(None);
        let entry = tokio::spawn(async move {
            let load = async move {
                let outcome = loading.await.inspect_err(|error| metrics.error(error));
                Arc::new(Entry::new(outcome, check_at))
            };
            entries.get_with(key, load).await
        });
        match wait.for_task(entry).await {
            Some(entry) => entry.outcome.clone(),
            None => Err(wait.exceeded()),
        }
    }

    fn cached<F, L>(&self, key: &K, entry: &Arc<Entry<V>>, load: F) -> Result<V, RegistryError>
    where
        F: FnOnce(Option<V>) -> L,
        L: Future<Output = Result<V, RegistryError>> + Send + 'static,
    {
        let known = match &entry.outcome {
            Ok(known) => known,
            Err(error) => {
                self.metrics.lookup(LookupResult::Failure);
                return Err(error.clone());
            }
        };
        if self.now() < entry.check_at.load(Ordering::Relaxed) {
            self.metrics.lookup(LookupResult::Hit);
        } else {
            self.metrics.lookup(LookupResult::Stale);
            if !entry.being_checked.swap(true, Ordering::AcqRel) {
                self.check(key.clone(), Arc::clone(entry), load(Some(known.clone())));
            }
        }
        Ok(known.clone())
    }

    fn check<L>(&self, key: K, entry: Arc<Entry<V>>, load: L)
    where
        L: Future<Output = Result<V, RegistryError>> + Send + 'static,
    {
        let (recent, entries) = (Arc::clone(&self.recent), self.entries.clone());
        let metrics = self.metrics.clone();
        let (ttl, clock) = (self.ttl, self.clock);
        tokio::spawn(async move {
            let later = |wait: Duration| millis(clock.elapsed().saturating_add(wait));
            match load.await {
                Ok(found) if entry.outcome.as_ref() == Ok(&found) => {
                    entry.check_at.store(later(ttl), Ordering::Relaxed);
                }
                Ok(found) => {
                    // A concurrent reader may put the old entry back into `recent`. It is due for a
                    // check, which ends here again.
                    let found = Arc::new(Entry::new(Ok(found), later(ttl)));
                    entries.insert(key.clone(), Arc::clone(&found)).await;
                    recent.put(key, found);
                }
                // An outdated result is better than none.
                Err(error) if error.is_temporary() => {
                    metrics.error(&error);
                    tracing::warn!(%error, "cannot check an image; its cached metadata stays in use");
                    entry
                        .check_at
                        .store(later(ttl.min(MAX_CHECK_RETRY_DELAY)), Ordering::Relaxed);
                }
                Err(error) => {
                    metrics.error(&error);
                    tracing::warn!(%error, "a cached image is no longer available");
                    entries.invalidate(&key).await;
                    recent.remove(&key);
                }
            }
            entry.being_checked.store(false, Ordering::Release);
        });
    }

    fn now(&self) -> u64 {
        millis(self.clock.elapsed())
    }

    fn later(&self, wait: Duration) -> u64 {
        millis(self.clock.elapsed().saturating_add(wait))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

// === impl Entry ===

impl<V> Entry<V> {
    fn new(outcome: Result<V, RegistryError>, check_at: u64) -> Self {
        Self {
            outcome,
            check_at: AtomicU64::new(check_at),
            being_checked: AtomicBool::new(false),
        }
    }
}

// === impl FailuresExpire ===

impl<K, V> Expiry<K, Arc<Entry<V>>> for FailuresExpire {
    fn expire_after_create(&self, _: &K, entry: &Arc<Entry<V>>, _: Instant) -> Option<Duration> {
        entry.outcome.is_err().then_some(self.0)
    }

    fn expire_after_update(
        &self,
        _: &K,
        entry: &Arc<Entry<V>>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        entry.outcome.is_err().then_some(self.0)
    }
}

/// The deadline of a caller, and the image that it waits for.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'a> {
    image: &'a ImageReference,
    deadline: Option<Instant>,
    since: Instant,
}

// === impl Wait ===

impl<'a> Wait<'a> {
    pub(crate) fn new(image: &'a ImageReference, deadline: Option<Instant>) -> Self {
        Self {
            image,
            deadline,
            since: Instant::now(),
        }
    }

    /// Waits for a task; returns `None` if the deadline passes first. The task continues in any
    /// case.
    async fn for_task<T>(self, task: tokio::task::JoinHandle<T>) -> Option<T> {
        let joined = match self.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline.into(), task).await.ok()?,
            None => task.await,
        };
        match joined {
            Ok(value) => Some(value),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that is shutting down cancels the task.
                Err(_) => None,
            },
        }
    }

    fn exceeded(self) -> RegistryError {
        RegistryError::DeadlineExceeded {
            image: self.image.to_string(),
            registry: self.image.registry().to_owned(),
            waited: self.since.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests;
