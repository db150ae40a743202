//! `wrapper-server hold`: waits to be ended, in the container whose hook has copied the wrapper.

use std::{io, process::ExitCode};

use tokio::signal::unix::{SignalKind, signal};

use crate::complain;

/// Waits for SIGTERM or SIGINT, which the kernel keeps from a PID 1 that does not ask for them.
pub(crate) fn main() -> ExitCode {
    match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("cannot wait for signals: {error}"), 1),
    }
}

fn hold() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
