//! Scratch directories: an empty working directory for each process.
//!
//! Functions rarely write to it, so an unchanged directory is reused: creating and removing one is
//! expensive on a journalling file system, and so is listing it every time. Checking its change
//! time is enough if that is older than the process.

use std::{
    env, fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat};

/// Prefix of the name of every root.
const PREFIX: &str = "krm-functions-";

/// Number of names tried for a root before the runner goes without scratch directories.
const ROOT_ATTEMPTS: usize = 100;

const MODE: u32 = 0o700;

/// Maximum step (20 ms) of the file system's clock: a change within it may not alter the change
/// time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A factory of scratch directories; its last user removes them all.
///
/// On a read-only file system there are none, and functions run without.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchRoot(Arc<Root>);

#[derive(Debug, Default)]
struct Root {
    /// The root, created with the first directory; `None` if it cannot be created.
    path: OnceLock<Option<Held>>,
    unused: Mutex<Vec<Unused>>,
}

/// A root directory locked by this process; a root without a lock is abandoned.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    _lock: OwnedFd,
}

/// A directory to reuse, and its change time when it was last seen empty.
#[derive(Debug)]
struct Unused {
    path: PathBuf,
    changed: Option<SystemTime>,
}

/// The directory of one process.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    root: Arc<Root>,
    /// Change time of the empty directory, if every later change is certain to alter it.
    empty: Option<SystemTime>,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Paths of the roots of this process.
static ROOTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

// === impl ScratchRoot ===

impl ScratchRoot {
    /// Returns an empty directory for one process, or `None` if it cannot be created.
    pub(crate) fn scratch(&self) -> Option<Scratch> {
        let held = self
            .0
            .path
            .get_or_init(|| root(&env::temp_dir()))
            .as_ref()?;
        let root = &held.path;
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
        if let Some(Some(held)) = self.path.get() {
            let _ = fs::remove_dir_all(&held.path);
            roots().retain(|root| *root != held.path);
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

/// Removes all roots of this process, including those in use.
pub(crate) fn remove_all() {
    for root in roots().iter() {
        let _ = fs::remove_dir_all(root);
    }
}

/// Removes the scratch directories of processes that were killed.
///
/// Blocks while the disk is slow. No evaluation depends on it.
pub fn remove_abandoned() {
    remove_abandoned_in(&env::temp_dir());
}

fn roots() -> MutexGuard<'static, Vec<PathBuf>> {
    ROOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn root(parent: &Path) -> Option<Held> {
    match fresh(parent) {
        Ok(held) => {
            roots().push(held.path.clone());
            Some(held)
        }
        Err(error) => {
            tracing::warn!(
                directory = %parent.display(), %error,
                "no scratch directories: functions run in / (set TMPDIR to a writable directory)"
            );
            None
        }
    }
}

fn next() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Creates a root and locks it.
///
/// The name may be taken, because containers that share the directory may have the same pid. And
/// until a new root is locked it counts as abandoned, so another process may be removing it. In
/// both cases the next name is tried.
fn fresh(parent: &Path) -> io::Result<Held> {
    for _ in 0..ROOT_ATTEMPTS {
        let path = parent.join(format!("{PREFIX}{}-{}", std::process::id(), next()));
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        if let Ok(lock) = hold(&path) {
            return Ok(Held { path, _lock: lock });
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the roots that no process holds.
///
/// The lock distinguishes them from roots in use, even of a process in another PID namespace.
fn remove_abandoned_in(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_root = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Locked until it is removed, so that a process that has just created it cannot use it.
        if is_root && let Ok(_lock) = hold(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a directory for as long as the descriptor is open. Functions do not inherit it.
///
/// # Errors
/// If another process holds the directory, or removed it before it was locked.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    let (locked, named) = (fstat(&directory)?, lstat(path)?);
    if (locked.st_dev, locked.st_ino) != (named.st_dev, named.st_ino) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(directory)
}

fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(MODE).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_only_an_unchanged_directory() {
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
    fn recognises_an_old_empty_directory_by_its_change_time() {
        let root = ScratchRoot::default();
        let path = root.scratch().unwrap().path().to_owned();
        let old = SystemTime::now() - Duration::from_secs(60);
        let age = |changed| root.0.unused.lock().unwrap()[0].changed = changed;
        // As if it had been empty for a minute: it need not be listed.
        let changed = change_time(&fs::symlink_metadata(&path).unwrap());
        age(Some(old));
        assert_eq!(root.scratch().unwrap().empty, Some(old));
        // The change time was different, so the directory was listed and its new change time
        // recorded.
        assert_eq!(root.0.unused.lock().unwrap()[0].changed, changed);
        // A directory that changed just now may change again without altering its change time.
        age(Some(SystemTime::now()));
        assert_eq!(root.scratch().unwrap().empty, None);
        age(Some(old));
        let used = root.scratch().unwrap();
        fs::write(path.join("left"), "behind").unwrap();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn removes_the_roots_that_nobody_holds() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["krm-functions-1-0", "krm-functions-2-0", "others"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "").unwrap();
        }
        std::os::unix::fs::symlink(at("others"), at("krm-functions-3-0")).unwrap();
        let held = hold(&at("krm-functions-2-0")).unwrap();
        remove_abandoned_in(parent.path());
        assert!(!at("krm-functions-1-0").exists());
        assert!(at("krm-functions-2-0/file").exists(), "it is held");
        assert!(at("others/file").exists(), "no link is followed");
        drop(held);
        remove_abandoned_in(parent.path());
        assert!(!at("krm-functions-2-0").exists());
    }

    #[test]
    fn never_removes_a_root_while_it_is_created() {
        let parent = tempfile::tempdir().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    remove_abandoned_in(parent.path());
                }
            });
            let roots: Vec<Held> = (0..500).map(|_| fresh(parent.path()).unwrap()).collect();
            is_done.store(true, Ordering::Relaxed);
            for root in roots {
                make(&root.path.join("scratch")).unwrap();
            }
        });
    }

    #[test]
    fn leaves_the_root_of_another_process_with_the_same_pid_alone() {
        let parent = tempfile::tempdir().unwrap();
        let number = NUMBER.load(Ordering::Relaxed);
        let others: Vec<PathBuf> = (number..number + 50)
            .map(|number| format!("{PREFIX}{}-{number}", std::process::id()))
            .map(|name| parent.path().join(name))
            .collect();
        for other in &others {
            make(other).unwrap();
            fs::write(other.join("file"), "").unwrap();
        }
        let own = fresh(parent.path()).unwrap();
        assert!(!others.contains(&own.path));
        assert!(others.iter().all(|other| other.join("file").exists()));
    }

    #[test]
    fn removes_all_directories_with_the_last_user() {
        let root = ScratchRoot::default();
        let scratch = root.scratch().unwrap();
        let parent = scratch.path().parent().unwrap().to_owned();
        drop(root);
        assert!(parent.exists());
        drop(scratch);
        assert!(!parent.exists());
    }
}
