//! The directories of a test bed, all below the user's cache directory.
//!
//! `programs/` outlives the test bed and is keyed by versions. `run/` belongs to the running test
//! bed; removing it is the last step of `down`.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The paths of one user's test bed.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

// === impl Layout ===

impl Layout {
    /// Returns the layout of this user's test bed, below `$XDG_CACHE_HOME` or `~/.cache`.
    pub fn of_user() -> Result<Self> {
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| env::home_dir().map(|home| home.join(".cache")))
            .context("neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(Self::at(cache.join("krm-function-runner/testbed")))
    }

    fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the directory of built programs, which is kept between test beds.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// Returns the directory for parts of images that take long to make, also kept between test
    /// beds.
    #[must_use]
    pub fn image_parts(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Returns the directory of the running test bed.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Returns the path of a file or directory of the running test bed.
    #[must_use]
    pub fn in_run(&self, name: &str) -> PathBuf {
        self.run().join(name)
    }

    /// Returns the path of a component's log.
    #[must_use]
    pub fn log(&self, component: &str) -> PathBuf {
        self.run().join("logs").join(format!("{component}.log"))
    }

    /// Returns the lock file that `up` and `down` hold while they run.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Returns the lock file that tests hold: shared, or exclusively if they disturb the cluster.
    #[must_use]
    pub fn tests_lock(&self) -> PathBuf {
        self.root.join("tests.lock")
    }
}

/// Replaces a file in one step, so that it is never partial, even after a crash.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let fresh = path.with_added_extension("new");
    fs::write(&fresh, contents)
        .and_then(|()| fs::rename(&fresh, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Creates a directory and its parents.
pub fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}
