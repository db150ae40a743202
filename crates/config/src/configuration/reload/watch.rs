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

/// A set of watched directories; the watch ends when its [`Hold`] is dropped.
pub(super) struct Watch {
    events: OwnedFd,
    held: PipeReader,
}

/// A guard that keeps its [`Watch`] alive.
#[derive(Debug)]
pub(super) struct Hold {
    _held: PipeWriter,
}

/// The result of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Change,
    Nothing,
    /// The [`Hold`] was dropped.
    End,
}

// === impl Watch ===

impl Watch {
    pub(super) fn new() -> io::Result<(Self, Hold)> {
        let (held, hold) = io::pipe()?;
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok((Self { events, held }, Hold { _held: hold }))
    }

    pub(super) fn add(&self, directory: &Path) -> io::Result<()> {
        inotify::add_watch(&self.events, directory, CHANGES)?;
        Ok(())
    }

    /// Waits for the next change, at most for `limit`.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Heard {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut sources = [
            PollFd::new(&self.events, PollFlags::IN),
            PollFd::new(&self.held, PollFlags::IN),
        ];
        loop {
            match poll(&mut sources, limit.as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Heard::Nothing,
                // A failed poll would fail forever.
                Err(_) => return Heard::End,
                Ok(_) => {}
            }
            if !sources[1].revents().is_empty() {
                return Heard::End;
            }
            self.drain();
            return Heard::Change;
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
        let (watch, _hold) = Watch::new().unwrap();
        watch.add(directory.path()).unwrap();
        fs::read(&file).unwrap();
        fs::read_dir(directory.path()).unwrap().for_each(drop);
        assert_eq!(watch.wait(AT_ONCE), Heard::Nothing);
        fs::write(&file, "two").unwrap();
        assert_eq!(watch.wait(SOON), Heard::Change);
        assert_eq!(watch.wait(AT_ONCE), Heard::Nothing);
    }

    #[test]
    fn ends_when_the_hold_is_dropped() {
        let (watch, hold) = Watch::new().unwrap();
        drop(hold);
        assert_eq!(watch.wait(None), Heard::End);
    }
}
