//! SIGTERM and SIGINT: the first drains, the second ends at once.

use std::{io, time::Duration};

use runner_service::Lifecycle;
use tokio::signal::unix::{SignalKind, signal};

/// Watches for signals from now on.
pub(crate) fn watch(lifecycle: Lifecycle, grace: Duration) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
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
        runner_process::end_all();
        std::process::exit(code);
    });
    Ok(())
}
