//! The reading end of a pipe that a function writes to.
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

use crate::descriptor::register;

/// Interest in the closing of a pipe only: pipes have no priority data, and closing is always
/// reported.
const NOTHING_BUT_THE_END: Interest = Interest::PRIORITY;

const READ_SIZE: usize = 16 << 10;

/// Minimum free capacity in bytes; a buffer with less grows before the next read.
///
/// A larger value would reallocate and copy an output that is about as long as expected, only for
/// its last few bytes.
const LEAST_ROOM: usize = 4 << 10;

/// Number of reads without waiting: together more than a pipe of the default size holds.
const READS_AT_ONCE: usize = 8;

/// A non-blocking pipe that is not being read yet.
pub(crate) struct Output(AsyncFd<OwnedFd>);

/// The state of a pipe whose writer has no input yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    /// The pipe contains bytes.
    Written,
    /// The pipe is empty and its other end is closed.
    Closed,
}

// === impl Output ===

impl Output {
    /// Registers a pipe for its closing only. Needs a tokio runtime.
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, NOTHING_BUT_THE_END).map(Self)
    }

    /// Registers a pipe for writes as well, for a process that has no input yet. Needs a tokio
    /// runtime.
    pub(crate) fn watched(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, Interest::READABLE).map(Self)
    }

    /// Converts a watched pipe back into one that is registered for its closing only.
    pub(crate) fn unwatched(self) -> io::Result<Self> {
        Self::new(self.0.into_inner())
    }

    /// Waits until the pipe is written to or closed. Only for a watched pipe.
    pub(crate) fn poll_early(&self, context: &mut Context<'_>) -> Poll<Early> {
        loop {
            // An error means that the runtime is shutting down.
            let Ok(mut ready) = std::task::ready!(self.0.poll_read_ready(context)) else {
                return Poll::Pending;
            };
            if ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0) {
                return Poll::Ready(Early::Written);
            }
            if ready.ready().is_read_closed() {
                return Poll::Ready(Early::Closed);
            }
            ready.clear_ready();
        }
    }

    /// Returns a buffer for an output of about this length.
    ///
    /// It is allocated at once instead of growing in steps.
    pub(crate) fn buffer(expected: usize) -> Vec<u8> {
        Vec::with_capacity(expected + READ_SIZE)
    }

    /// Waits until the other end is closed by all processes that hold it.
    pub(crate) async fn closed(&self) -> io::Result<()> {
        let mut ready = self.0.ready(NOTHING_BUT_THE_END).await?;
        ready.retain_ready();
        Ok(())
    }

    /// Reads to the end, and calls `look` after every read that added to the buffer.
    pub(crate) async fn drain<E: From<io::Error>>(
        self,
        buffer: &mut Vec<u8>,
        mut look: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        // After the process has ended, these reads return everything.
        for _ in 0..READS_AT_ONCE {
            make_room(buffer);
            match read(&self.0, spare_capacity(buffer)) {
                Ok(0) => return Ok(()),
                Ok(_) => look(buffer)?,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        let mut pipe = Receiver::from_owned_fd_unchecked(self.0.into_inner())?;
        loop {
            make_room(buffer);
            match pipe.read_buf(buffer).await? {
                0 => return Ok(()),
                _ => look(buffer)?,
            }
        }
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn make_room(buffer: &mut Vec<u8>) {
    if buffer.capacity() - buffer.len() < LEAST_ROOM {
        buffer.reserve(READ_SIZE);
    }
}
