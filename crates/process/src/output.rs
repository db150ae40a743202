//! The runner's end of a pipe that a function writes to.
//!
//! Most functions write little, line by line, and end soon. A wake-up for every line would take the
//! core from the process that is being waited for. So at first a pipe only reports that its other
//! end was closed, and the output stays in the pipe.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    task::{Context, Poll},
};

use rustix::{
    buffer::spare_capacity,
    io::{Errno, ioctl_fionread, read},
};
use tokio::{
    io::{AsyncReadExt, Interest, unix::AsyncFd},
    net::unix::pipe::Receiver,
};

/// Interest in the closing of a pipe only: pipes have no priority data, and closing is always
/// reported.
const CLOSING_ONLY: Interest = Interest::PRIORITY;

/// Number of bytes (16 KiB) by which a buffer grows.
const BUFFER_STEP: usize = 16 << 10;

/// Minimum free capacity (4 KiB); a buffer with less grows before the next read.
///
/// A larger value would reallocate and copy an output that is about as long as expected, only for
/// its last few bytes.
const MIN_FREE_CAPACITY: usize = 4 << 10;

/// Maximum number of reads without waiting: together more than a pipe of the default size holds.
const MAX_IMMEDIATE_READS: usize = 8;

/// A non-blocking pipe that is not being read yet.
pub(crate) struct OutputPipe(AsyncFd<OwnedFd>);

/// The activity on a pipe whose writer has no input yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipeActivity {
    /// The pipe contains bytes.
    Written,
    /// The pipe is empty and its other end is closed.
    Closed,
}

// === impl OutputPipe ===

impl OutputPipe {
    /// Registers a pipe for its closing only. Needs a tokio runtime.
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, CLOSING_ONLY).map(Self)
    }

    /// Registers a pipe for writes as well, for a process that has no input yet. Needs a tokio
    /// runtime.
    pub(crate) fn watched(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, Interest::READABLE).map(Self)
    }

    /// Converts a watched pipe into one that is registered for its closing only.
    pub(crate) fn into_unwatched(self) -> io::Result<Self> {
        Self::new(self.0.into_inner())
    }

    /// Waits until the pipe is written to or closed. Only for a watched pipe.
    pub(crate) fn poll_activity(&self, context: &mut Context<'_>) -> Poll<PipeActivity> {
        loop {
            // An error means that the runtime is shutting down.
            let Ok(mut ready) = std::task::ready!(self.0.poll_read_ready(context)) else {
                return Poll::Pending;
            };
            if ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0) {
                return Poll::Ready(PipeActivity::Written);
            }
            if ready.ready().is_read_closed() {
                return Poll::Ready(PipeActivity::Closed);
            }
            ready.clear_ready();
        }
    }

    /// Waits until the other end is closed by all processes that hold it.
    pub(crate) async fn wait_until_closed(&self) -> io::Result<()> {
        let mut ready = self.0.ready(CLOSING_ONLY).await?;
        ready.retain_ready();
        Ok(())
    }

    /// Reads to the end, and calls `on_read` after every read that added to the buffer.
    pub(crate) async fn read_to_end<E: From<io::Error>>(
        self,
        buffer: &mut Vec<u8>,
        mut on_read: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        // After the process has ended, these reads return everything.
        for _ in 0..MAX_IMMEDIATE_READS {
            reserve(buffer);
            match read(&self.0, spare_capacity(buffer)) {
                Ok(0) => return Ok(()),
                Ok(_) => on_read(buffer)?,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        let mut pipe = Receiver::from_owned_fd_unchecked(self.0.into_inner())?;
        loop {
            reserve(buffer);
            match pipe.read_buf(buffer).await? {
                0 => return Ok(()),
                _ => on_read(buffer)?,
            }
        }
    }
}

impl AsFd for OutputPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Creates a buffer for an output of about this length, which then does not have to grow.
pub(crate) fn buffer_for(expected_length: usize) -> Vec<u8> {
    Vec::with_capacity(expected_length + BUFFER_STEP)
}

/// Enlarges a buffer that has less than [`MIN_FREE_CAPACITY`] left.
fn reserve(buffer: &mut Vec<u8>) {
    if buffer.capacity() - buffer.len() < MIN_FREE_CAPACITY {
        buffer.reserve(BUFFER_STEP);
    }
}

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
