//! Changes in directories, as the kernel tells them.
//!
//! Whoever opens or runs a file there is none of our business: functions are run all the time, and a
//! watch that hears of it (as the `notify` crate's does) wakes a thread for every evaluation.

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

/// A file appeared, went, was written, or became executable. Written means closed: while it is
/// being written it is not worth reading.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB);

/// Directories that are watched until the [`Hold`] on them is dropped.
pub(super) struct Watch {
    events: OwnedFd,
    held: PipeReader,
}

/// As long as it lives, its [`Watch`] goes on.
#[derive(Debug)]
pub(super) struct Hold {
    _held: PipeWriter,
}

/// What a wait ended with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Change,
    Nothing,
    /// Nobody holds the watch any more.
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

    /// Waits for the next change, for so long if there is a limit.
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
                // A poll that fails would fail for ever.
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

    /// That something changed is all there is to know: a look at the files tells the rest.
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
    fn reading_is_no_change_and_writing_is() {
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
    fn it_ends_with_its_hold() {
        let (watch, hold) = Watch::new().unwrap();
        drop(hold);
        assert_eq!(watch.wait(None), Heard::End);
    }
}
