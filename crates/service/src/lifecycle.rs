//! The phases of a server: starting, serving, draining, stopping.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// The current phase of a server. Clones are cheap and share the phase.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<watch::Sender<Phase>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Starting,
    Serving,
    /// No new connections are accepted; running evaluations may finish.
    Draining,
    /// The grace period has ended; evaluations that still run fail.
    Stopping,
}

// === impl Lifecycle ===

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Starting)))
    }
}

impl Lifecycle {
    /// Enters the phase `Serving`, in which health checks return SERVING.
    ///
    /// To be called once the configuration is loaded and everything is in step.
    pub fn ready(&self) {
        self.advance(Phase::Serving);
    }

    /// Starts to drain; running evaluations get `grace` to finish.
    pub fn drain(&self, grace: Duration) {
        self.advance(Phase::Draining);
        let lifecycle = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            lifecycle.advance(Phase::Stopping);
        });
    }

    /// Waits until the server drains.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until the phase is reached or passed.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut phases = self.0.subscribe();
        // Cannot fail: the sender is in `self`.
        let _ = phases.wait_for(|now| *now >= phase).await;
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Enters a phase unless it is reached already: phases never go back.
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
