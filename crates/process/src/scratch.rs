//! A working directory of its own for each process, removed after it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The directory under which scratch directories are made, from the first one on; removed when
/// dropped. There is none where the file system is read-only: functions hardly ever need one, so
/// they run without.
#[derive(Debug, Default)]
pub(crate) struct ScratchRoot(OnceLock<Option<PathBuf>>);

/// One process's directory.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

static NUMBER: AtomicU64 = AtomicU64::new(0);

// === impl ScratchRoot ===

impl ScratchRoot {
    /// A fresh directory for one process, unless the disk is full or there can be none.
    pub(crate) fn scratch(&self) -> Option<Scratch> {
        let path = self.0.get_or_init(root).as_ref()?.join(next().to_string());
        match make(&path) {
            Ok(()) => Some(Scratch(path)),
            Err(error) => {
                tracing::warn!(directory = %path.display(), %error, "no scratch directory: running in /");
                None
            }
        }
    }
}

impl Drop for ScratchRoot {
    fn drop(&mut self) {
        if let Some(Some(path)) = self.0.get() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

// === impl Scratch ===

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nearly always empty.
        if fs::remove_dir(&self.0).is_err() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
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
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}
