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
const ROOT_PREFIX: &str = "krm-functions-";

/// Number of names tried for a root; if all are taken, functions run without scratch directories.
const ROOT_ATTEMPTS: usize = 100;

/// Mode of roots and scratch directories.
const DIRECTORY_MODE: u32 = 0o700;

/// Maximum step (20 ms) of the file system's clock: a second change within one step may leave the
/// change time as it is.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The scratch directories of an engine, in one root directory; removed with the last clone and the
/// last [`ScratchDirectory`].
///
/// On a read-only file system there are none, and functions run in `/`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchRoot(Arc<RootState>);

/// The shared state of a [`ScratchRoot`].
#[derive(Debug, Default)]
struct RootState {
    /// The root, created with the first directory; `None` if it cannot be created.
    locked: OnceLock<Option<LockedRoot>>,
    unused: Mutex<Vec<UnusedDirectory>>,
}

/// A root directory locked by this process; a root without a lock is abandoned.
#[derive(Debug)]
struct LockedRoot {
    path: PathBuf,
    _lock: OwnedFd,
}

/// A directory to reuse, and its change time when it was last found empty.
#[derive(Debug)]
struct UnusedDirectory {
    path: PathBuf,
    change_time: Option<SystemTime>,
}

/// The scratch directory of one process; when dropped, it is reused or removed.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    path: PathBuf,
    root: Arc<RootState>,
    /// Change time of the empty directory, if every later change is certain to alter it.
    empty_change_time: Option<SystemTime>,
}

/// Number in the name of the next root or scratch directory.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Paths of the roots of this process.
static ROOTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

// === impl ScratchRoot ===

impl ScratchRoot {
    /// Returns an empty directory for one process, or `None` if it cannot be created.
    pub(crate) fn take_directory(&self) -> Option<ScratchDirectory> {
        let locked = self
            .0
            .locked
            .get_or_init(|| create_registered_root(&env::temp_dir()));
        let root = &locked.as_ref()?.path;
        let unused = self
            .0
            .unused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let directory = match unused {
            Some(unused) => Ok(unused),
            None => {
                let path = root.join(next_number().to_string());
                create_directory(&path).map(|()| UnusedDirectory {
                    path,
                    change_time: None,
                })
            }
        };
        match directory {
            Ok(UnusedDirectory { path, change_time }) => {
                let limit = SystemTime::now().checked_sub(CLOCK_STEP);
                let is_past_step = |changed| limit.is_some_and(|limit| changed < limit);
                Some(ScratchDirectory {
                    path,
                    root: self.0.clone(),
                    empty_change_time: change_time.filter(|changed| is_past_step(*changed)),
                })
            }
            Err(error) => {
                tracing::warn!(
                    directory = %root.display(), %error,
                    "no scratch directory: the function runs in /"
                );
                None
            }
        }
    }
}

// === impl RootState ===

impl Drop for RootState {
    fn drop(&mut self) {
        if let Some(Some(locked)) = self.locked.get() {
            let _ = fs::remove_dir_all(&locked.path);
            roots().retain(|root| *root != locked.path);
        }
    }
}

// === impl ScratchDirectory ===

impl ScratchDirectory {
    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return;
        };
        let change_time = change_time(&metadata);
        if (change_time.is_some() && change_time == self.empty_change_time)
            || is_empty_with_mode(&path, &metadata)
        {
            self.root
                .unused
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(UnusedDirectory { path, change_time });
        } else {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn change_time(metadata: &fs::Metadata) -> Option<SystemTime> {
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// Returns whether a path is an empty directory with the original mode.
fn is_empty_with_mode(path: &Path, metadata: &fs::Metadata) -> bool {
    let is_original = metadata.is_dir() && metadata.permissions().mode() & 0o7777 == DIRECTORY_MODE;
    is_original && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes all roots of this process, including those in use.
pub(crate) fn remove_all_roots() {
    for root in roots().iter() {
        let _ = fs::remove_dir_all(root);
    }
}

/// Removes the scratch directories of processes that were killed.
///
/// Blocks for as long as the disk takes. No evaluation depends on it.
pub fn remove_abandoned_scratch_directories() {
    remove_abandoned_roots(&env::temp_dir());
}

fn roots() -> MutexGuard<'static, Vec<PathBuf>> {
    ROOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a root and adds it to [`ROOTS`]; logs a failure.
fn create_registered_root(parent: &Path) -> Option<LockedRoot> {
    match create_root(parent) {
        Ok(root) => {
            roots().push(root.path.clone());
            Some(root)
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

fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Creates a root and locks it.
///
/// The name may be taken, because containers that share the directory may have the same pid. And
/// until a new root is locked it counts as abandoned, so another process may be removing it. In
/// both cases the next name is tried.
fn create_root(parent: &Path) -> io::Result<LockedRoot> {
    for _ in 0..ROOT_ATTEMPTS {
        let path = parent.join(format!(
            "{ROOT_PREFIX}{}-{}",
            std::process::id(),
            next_number()
        ));
        match create_directory(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        }
        if let Ok(lock) = lock_directory(&path) {
            return Ok(LockedRoot { path, _lock: lock });
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the roots that no process has locked.
///
/// The lock distinguishes them from roots in use, even of a process in another PID namespace.
fn remove_abandoned_roots(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_root = entry.file_name().to_string_lossy().starts_with(ROOT_PREFIX);
        // Locked until it is removed, so that a process that has just created it cannot use it.
        if is_root && let Ok(_lock) = lock_directory(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a directory for as long as the descriptor is open. Functions do not inherit it.
///
/// # Errors
/// If another process has locked the directory, or removed it before it was locked.
fn lock_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    let (locked, named) = (fstat(&directory)?, lstat(path)?);
    if (locked.st_dev, locked.st_ino) != (named.st_dev, named.st_ino) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(directory)
}

fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_only_an_unchanged_directory() {
        let root = ScratchRoot::default();
        let first = root.take_directory().unwrap();
        let path = first.path().to_owned();
        drop(first);
        let second = root.take_directory().unwrap();
        assert_eq!(second.path(), path);
        fs::write(path.join("file"), "").unwrap();
        drop(second);
        let third = root.take_directory().unwrap();
        assert_ne!(third.path(), path);
        assert!(!path.exists());
        fs::set_permissions(third.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let changed = third.path().to_owned();
        drop(third);
        assert_ne!(root.take_directory().unwrap().path(), changed);
    }

    #[test]
    fn recognises_an_old_empty_directory_by_its_change_time() {
        let root = ScratchRoot::default();
        let path = root.take_directory().unwrap().path().to_owned();
        let old = SystemTime::now() - Duration::from_secs(60);
        let set_change_time = |changed| root.0.unused.lock().unwrap()[0].change_time = changed;
        // A directory that has been empty for a minute is recognised without being listed.
        let changed = change_time(&fs::symlink_metadata(&path).unwrap());
        set_change_time(Some(old));
        assert_eq!(root.take_directory().unwrap().empty_change_time, Some(old));
        // The change time was different, so the directory was listed and its new change time
        // recorded.
        assert_eq!(root.0.unused.lock().unwrap()[0].change_time, changed);
        // A directory that changed just now may change again without altering its change time.
        set_change_time(Some(SystemTime::now()));
        assert_eq!(root.take_directory().unwrap().empty_change_time, None);
        set_change_time(Some(old));
        let used = root.take_directory().unwrap();
        fs::write(path.join("file"), "").unwrap();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn removes_roots_that_no_process_has_locked() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["krm-functions-1-0", "krm-functions-2-0", "others"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "").unwrap();
        }
        std::os::unix::fs::symlink(at("others"), at("krm-functions-3-0")).unwrap();
        let lock_of_second = lock_directory(&at("krm-functions-2-0")).unwrap();
        remove_abandoned_roots(parent.path());
        assert!(!at("krm-functions-1-0").exists());
        assert!(at("krm-functions-2-0/file").exists(), "the root is locked");
        assert!(
            at("others/file").exists(),
            "symbolic links are not followed"
        );
        drop(lock_of_second);
        remove_abandoned_roots(parent.path());
        assert!(!at("krm-functions-2-0").exists());
    }

    #[test]
    fn never_removes_a_root_while_it_is_created() {
        let parent = tempfile::tempdir().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    remove_abandoned_roots(parent.path());
                }
            });
            let roots: Vec<LockedRoot> = (0..500)
                .map(|_| create_root(parent.path()).unwrap())
                .collect();
            is_done.store(true, Ordering::Relaxed);
            for root in roots {
                create_directory(&root.path.join("scratch")).unwrap();
            }
        });
    }

    #[test]
    fn keeps_the_root_of_another_process_with_the_same_pid() {
        let parent = tempfile::tempdir().unwrap();
        let number = NEXT_NUMBER.load(Ordering::Relaxed);
        let others: Vec<PathBuf> = (number..number + 50)
            .map(|number| format!("{ROOT_PREFIX}{}-{number}", std::process::id()))
            .map(|name| parent.path().join(name))
            .collect();
        for other in &others {
            create_directory(other).unwrap();
            fs::write(other.join("file"), "").unwrap();
        }
        let own = create_root(parent.path()).unwrap();
        assert!(!others.contains(&own.path));
        assert!(others.iter().all(|other| other.join("file").exists()));
    }

    #[test]
    fn removes_the_root_with_its_last_user() {
        let root = ScratchRoot::default();
        let scratch = root.take_directory().unwrap();
        let parent = scratch.path().parent().unwrap().to_owned();
        drop(root);
        assert!(parent.exists());
        drop(scratch);
        assert!(!parent.exists());
    }
}
