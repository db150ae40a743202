//! Logs outages of the API server: one line at the start of an outage, one at its end.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use runner_core::innermost;

/// The reachability of the API server, shared by all requests of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Outage {
    since: Arc<Mutex<Option<Instant>>>,
}

// === impl Outage ===

impl Outage {
    /// Records a request that got any answer, even an error.
    pub(super) fn answered(&self) {
        if let Some(since) = self.lock().take() {
            tracing::info!(
                after = ?since.elapsed(),
                "the Kubernetes API server answers again"
            );
        }
    }

    /// Records a request that got no answer.
    pub(super) fn failed(&self, error: &(dyn Error + 'static)) {
        let mut since = self.lock();
        if since.is_none() {
            *since = Some(Instant::now());
            tracing::warn!(
                "the Kubernetes API server cannot be reached: {}; evaluations in running pods continue",
                innermost(error)
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn measures_an_outage_from_the_first_failure_to_the_next_answer() {
        let outage = Outage::default();
        let error = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        outage.failed(&error);
        let started = *outage.lock();
        outage.failed(&error);
        assert_eq!(*outage.lock(), started, "logged once");
        outage.answered();
        assert_eq!(*outage.lock(), None);
    }
}
