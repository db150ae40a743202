//! `wrapper-server hold`: keeps the container alive whose hook has copied the wrapper.

use std::{io, process::ExitCode};

use tokio::signal::unix::{SignalKind, signal};

use crate::print_error;

/// Waits for SIGTERM or SIGINT; the kernel delivers them to PID 1 only if it has a handler.
pub(crate) fn main() -> ExitCode {
    match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&format!("cannot wait for signals: {error}"), 1),
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
