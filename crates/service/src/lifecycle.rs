//! From starting through serving to drained.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// Where a server is in its life. Cheap to clone; all clones see the same.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<watch::Sender<Phase>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Starting,
    Serving,
    /// Nothing new; what runs may finish.
    Draining,
    /// What still runs is told so and ends.
    Stopping,
}

// === impl Lifecycle ===

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Starting)))
    }
}

impl Lifecycle {
    /// Configuration is loaded and everything is in step: health says SERVING.
    pub fn ready(&self) {
        self.advance(Phase::Serving);
    }

    /// Refuses new evaluations and gives the running ones this long to finish.
    pub fn drain(&self, grace: Duration) {
        self.advance(Phase::Draining);
        let lifecycle = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            lifecycle.advance(Phase::Stopping);
        });
    }

    /// Waits until it drains.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until the phase is reached or passed.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut phases = self.0.subscribe();
        // The sender lives in `self`.
        let _ = phases.wait_for(|now| *now >= phase).await;
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// A life has one direction.
    fn advance(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let forward = *phase < to;
            if forward {
                *phase = to;
            }
            forward
        });
    }
}
