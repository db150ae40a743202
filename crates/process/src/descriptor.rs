//! Registration of file descriptors for events.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Registers a descriptor for the events of an interest. Needs a tokio runtime.
#[expect(
    unsafe_code,
    reason = "tokio leaves it to the caller that the descriptor stays open"
)]
pub(crate) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the `AsyncFd` owns the descriptor, and nothing can close or replace it before the
    // `AsyncFd` is dropped or returns it.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}
