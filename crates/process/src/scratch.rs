//! A working directory of its own for each process, empty when it starts.
//!
//! Functions hardly ever write there, so a directory that is as it was is used again: making and
//! removing one is dear on a journalling file system.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

const MODE: u32 = 0o700;

/// Makes scratch directories; the last user removes them all. There are none where the file system
/// is read-only: functions then run without.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchRoot(Arc<Root>);

#[derive(Debug, Default)]
struct Root {
    /// Known once the first directory is wanted.
    path: OnceLock<Option<PathBuf>>,
    unused: Mutex<Vec<PathBuf>>,
}

/// One process's directory.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    root: Arc<Root>,
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
            Some(path) => Ok(path),
            None => {
                let path = root.join(next().to_string());
                make(&path).map(|()| path)
            }
        };
        match made {
            Ok(path) => Some(Scratch {
                path,
                root: self.0.clone(),
            }),
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
        if is_as_made(&path) {
            self.root
                .unused
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(path);
        } else {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_as_made(path: &Path) -> bool {
    let plain = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o7777 == MODE);
    plain && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn root() -> Option<PathBuf> {
    let path = env::temp_dir().join(format!("krm-functions-{}-{}", std::process::id(), next()));
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
