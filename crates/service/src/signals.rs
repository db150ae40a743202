//! Handling of SIGTERM and SIGINT: the first signal drains, the second ends the process at once.

use std::{io, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use crate::Lifecycle;

impl Lifecycle {
    /// Drains at the first signal from now on; at the second, calls `before_exit` and ends the
    /// process.
    pub fn drain_on_signals(
        &self,
        grace: Duration,
        before_exit: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let lifecycle = self.clone();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => ("SIGTERM", 143),
                    _ = interrupt.recv() => ("SIGINT", 130),
                }
            };
            let (name, _) = next().await;
            tracing::info!(
                signal = name,
                ?grace,
                "draining: a second signal ends at once"
            );
            lifecycle.drain(grace);
            let (name, code) = next().await;
            tracing::warn!(signal = name, "ending at once");
            before_exit();
            std::process::exit(code);
        });
        Ok(())
    }
}
