//! Watches directories for changes with inotify.
//!
//! Opening or running a file is not an event here. Functions run all the time, and a watch with
//! such events (as in the `notify` crate) would wake a thread for every evaluation.

use std::{
    io::{self, PipeReader, PipeWriter},
    os::fd::OwnedFd,
    path::Path,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, WatchFlags},
    io::Errno,
};

/// Events for files that are created, removed, written or made executable.
///
/// A file counts as written when it is closed, because it is incomplete before.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB);

/// A set of watched directories; the watch ends when its [`WatchGuard`] is dropped.
pub(super) struct Watch {
    events: OwnedFd,
    /// Readable once the guard is dropped.
    closed: PipeReader,
}

/// A guard that keeps its [`Watch`] alive.
#[derive(Debug)]
pub(super) struct WatchGuard {
    _open: PipeWriter,
}

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitOutcome {
    /// A file in a watched directory changed.
    Change,
    /// The time limit passed without a change.
    Timeout,
    /// The [`WatchGuard`] was dropped, or waiting failed.
    Closed,
}

// === impl Watch ===

impl Watch {
    pub(super) fn new() -> io::Result<(Self, WatchGuard)> {
        let (closed, open) = io::pipe()?;
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok((Self { events, closed }, WatchGuard { _open: open }))
    }

    pub(super) fn add(&self, directory: &Path) -> io::Result<()> {
        inotify::add_watch(&self.events, directory, CHANGES)?;
        Ok(())
    }

    /// Waits for the next change, at most for `limit`.
    pub(super) fn wait(&self, limit: Option<Duration>) -> WaitOutcome {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut sources = [
            PollFd::new(&self.events, PollFlags::IN),
            PollFd::new(&self.closed, PollFlags::IN),
        ];
        loop {
            match poll(&mut sources, limit.as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(0) => return WaitOutcome::Timeout,
                // A failed poll would fail forever.
                Err(_) => return WaitOutcome::Closed,
                Ok(_) => {}
            }
            if !sources[1].revents().is_empty() {
                return WaitOutcome::Closed;
            }
            self.drain();
            return WaitOutcome::Change;
        }
    }

    /// Discards all pending events; their details are not needed, since the files are read again.
    fn drain(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.events, &mut events).is_ok_and(|read| read > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_secs(10));
    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn reports_writing_but_not_reading() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        fs::write(&file, "one").unwrap();
        let (watch, _guard) = Watch::new().unwrap();
        watch.add(directory.path()).unwrap();
        fs::read(&file).unwrap();
        fs::read_dir(directory.path()).unwrap().for_each(drop);
        assert_eq!(watch.wait(AT_ONCE), WaitOutcome::Timeout);
        fs::write(&file, "two").unwrap();
        assert_eq!(watch.wait(SOON), WaitOutcome::Change);
        assert_eq!(watch.wait(AT_ONCE), WaitOutcome::Timeout);
    }

    #[test]
    fn closes_when_the_guard_is_dropped() {
        let (watch, guard) = Watch::new().unwrap();
        drop(guard);
        assert_eq!(watch.wait(None), WaitOutcome::Closed);
    }
}
