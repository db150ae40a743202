//! Our end of a pipe that a function writes to.
//!
//! Most functions write little, line by line, and are done. Being woken for every line would take
//! the core from the very process that is waited for. So at first a pipe tells only that its other
//! end was closed, and what was written waits in it.

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

/// A pipe is never urgent, and that it was closed is told whatever one asks for.
const NOTHING_BUT_THE_END: Interest = Interest::PRIORITY;

const READ_SIZE: usize = 16 << 10;

/// With less room than this, a buffer grows before it is read into. More would have the few bytes
/// that are left of an output as long as expected copy all of it to a larger place.
const LEAST_ROOM: usize = 4 << 10;

/// More than a pipe of the usual size holds.
const READS_AT_ONCE: usize = 8;

/// A pipe that does not block, and is not listened to yet.
pub(crate) struct Output(AsyncFd<OwnedFd>);

/// The state of a pipe whose writer has no input yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    /// Bytes are in the pipe.
    Written,
    /// The pipe is empty and nobody holds its other end.
    Closed,
}

// === impl Output ===

impl Output {
    /// Needs a tokio runtime.
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, NOTHING_BUT_THE_END).map(Self)
    }

    /// Registers for what is written as well, for a process that has no input yet. Needs a tokio
    /// runtime.
    pub(crate) fn watched(pipe: OwnedFd) -> io::Result<Self> {
        register(pipe, Interest::READABLE).map(Self)
    }

    /// Ends what [`Self::watched`] began.
    pub(crate) fn unwatched(self) -> io::Result<Self> {
        Self::new(self.0.into_inner())
    }

    /// Waits until the pipe is written to or closed. Only for a watched pipe.
    pub(crate) fn poll_early(&self, context: &mut Context<'_>) -> Poll<Early> {
        loop {
            // An error means that the runtime ends.
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

    /// A buffer for an output of about this length: one allocation instead of a series of growing
    /// ones.
    pub(crate) fn buffer(expected: usize) -> Vec<u8> {
        Vec::with_capacity(expected + READ_SIZE)
    }

    /// Waits until nobody holds the other end any more.
    pub(crate) async fn closed(&self) -> io::Result<()> {
        let mut ready = self.0.ready(NOTHING_BUT_THE_END).await?;
        ready.retain_ready();
        Ok(())
    }

    /// Reads to the end, and has every piece that was added to the buffer looked at.
    pub(crate) async fn drain<E: From<io::Error>>(
        self,
        buffer: &mut Vec<u8>,
        mut look: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        // After the end, this is all.
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
