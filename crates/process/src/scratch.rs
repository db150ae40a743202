//! A working directory of its own for each process, empty when it starts.
//!
//! Functions hardly ever write there, so a directory that is as it was is used again: making and
//! removing one is dear on a journalling file system, and so is looking into it every time. One look
//! at its change time is enough where that is older than the process.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const MODE: u32 = 0o700;

/// The file system's clock stands still for up to this long: within it, a change leaves no trace in
/// the change time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Makes scratch directories; the last user removes them all. There are none where the file system
/// is read-only: functions then run without.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchRoot(Arc<Root>);

#[derive(Debug, Default)]
struct Root {
    /// Known once the first directory is wanted.
    path: OnceLock<Option<PathBuf>>,
    unused: Mutex<Vec<Unused>>,
}

/// A directory that was empty when it was last changed.
#[derive(Debug)]
struct Unused {
    path: PathBuf,
    changed: Option<SystemTime>,
}

/// One process's directory.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    root: Arc<Root>,
    /// Its change time while it is empty, if a later change is bound to differ from that.
    empty: Option<SystemTime>,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

// === impl ScratchRoot ===

impl ScratchRoot {
    /// An empty directory for one process, unless the disk is full or there can be none.
    pub(crate) fn scratch(&self) -> Option<Scratch> {
        let root = self.0.path.get_or_init(root).as_ref()?;
        let unused = self
            .0
            .unused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let made = match unused {
            Some(unused) => Ok(unused),
            None => {
                let path = root.join(next().to_string());
                make(&path).map(|()| Unused {
                    path,
                    changed: None,
                })
            }
        };
        match made {
            Ok(Unused { path, changed }) => {
                let since = SystemTime::now().checked_sub(CLOCK_STEP);
                Some(Scratch {
                    path,
                    root: self.0.clone(),
                    empty: changed.filter(|changed| since.is_some_and(|since| *changed < since)),
                })
            }
            Err(error) => {
                tracing::warn!(directory = %root.display(), %error, "no scratch directory: running in /");
                None
            }
        }
    }
}

// === impl Root ===

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(Some(path)) = self.path.get() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

// === impl Scratch ===

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let Ok(found) = fs::symlink_metadata(&path) else {
            return;
        };
        let changed = change_time(&found);
        if (changed.is_some() && changed == self.empty) || is_as_made(&path, &found) {
            self.root
                .unused
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Unused { path, changed });
        } else {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn change_time(found: &fs::Metadata) -> Option<SystemTime> {
    let seconds = u64::try_from(found.ctime()).ok()?;
    let nanoseconds = u32::try_from(found.ctime_nsec()).ok()?;
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

fn is_as_made(path: &Path, found: &fs::Metadata) -> bool {
    let plain = found.is_dir() && found.permissions().mode() & 0o7777 == MODE;
    plain && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes what every root of this process made, whoever still uses it.
pub(crate) fn remove_all() {
    let ours = prefix();
    for entry in fs::read_dir(env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name().to_string_lossy().starts_with(&ours) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn prefix() -> String {
    format!("krm-functions-{}-", std::process::id())
}

fn root() -> Option<PathBuf> {
    let path = env::temp_dir().join(format!("{}{}", prefix(), next()));
    match fresh(&path) {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(
                directory = %path.display(), %error,
                "no scratch directories: functions run in / (set TMPDIR to a writable directory)"
            );
            None
        }
    }
}

fn next() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Replaces what an earlier process of the same pid left: containers restart as PID 1.
fn fresh(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => make(path),
    }
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(MODE).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_is_as_it_was_is_used_again() {
        let root = ScratchRoot::default();
        let first = root.scratch().unwrap();
        let path = first.path().to_owned();
        drop(first);
        let again = root.scratch().unwrap();
        assert_eq!(again.path(), path);
        fs::write(path.join("left"), "behind").unwrap();
        drop(again);
        let other = root.scratch().unwrap();
        assert_ne!(other.path(), path);
        assert!(!path.exists());
        fs::set_permissions(other.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let changed = other.path().to_owned();
        drop(other);
        assert_ne!(root.scratch().unwrap().path(), changed);
    }

    #[test]
    fn a_directory_that_was_looked_into_long_ago_is_known_by_its_change_time() {
        let root = ScratchRoot::default();
        let path = root.scratch().unwrap().path().to_owned();
        let old = SystemTime::now() - Duration::from_secs(60);
        let age = |changed| root.0.unused.lock().unwrap()[0].changed = changed;
        // As if it had been empty for a minute: nobody need look into it.
        let changed = change_time(&fs::symlink_metadata(&path).unwrap());
        age(Some(old));
        assert_eq!(root.scratch().unwrap().empty, Some(old));
        // Its change time is another now, so it was looked into, and is known by the new one.
        assert_eq!(root.0.unused.lock().unwrap()[0].changed, changed);
        // One that changed just now may change again without a trace.
        age(Some(SystemTime::now()));
        assert_eq!(root.scratch().unwrap().empty, None);
        age(Some(old));
        let used = root.scratch().unwrap();
        fs::write(path.join("left"), "behind").unwrap();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn the_last_user_removes_them_all() {
        let root = ScratchRoot::default();
        let scratch = root.scratch().unwrap();
        let parent = scratch.path().parent().unwrap().to_owned();
        drop(root);
        assert!(parent.exists());
        drop(scratch);
        assert!(!parent.exists());
    }
}
