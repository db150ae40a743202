//! Where everything lives: one directory under the user's cache directory.
//!
//! `programs/` outlives the test bed and is keyed by versions; `run/` is the test bed, and
//! removing it is the last step of taking the test bed down.

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
    /// The test bed of this user: `$XDG_CACHE_HOME` or `~/.cache`, as everywhere.
    pub fn of_user() -> Result<Self> {
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| env::home_dir().map(|home| home.join(".cache")))
            .context("neither XDG_CACHE_HOME nor HOME says where caches go")?;
        Ok(Self::at(cache.join("krm-function-runner/testbed")))
    }

    fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Built programs; kept from one test bed to the next.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// Parts of function images that take long to make; kept like the programs.
    #[must_use]
    pub fn image_parts(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Everything of a test bed that is up.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// A file or directory of a test bed that is up.
    #[must_use]
    pub fn in_run(&self, name: &str) -> PathBuf {
        self.run().join(name)
    }

    /// What a component printed.
    #[must_use]
    pub fn log(&self, component: &str) -> PathBuf {
        self.run().join("logs").join(format!("{component}.log"))
    }

    /// The lock that makes `up` and `down` wait for each other.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The lock by which tests that disturb the cluster keep others away.
    #[must_use]
    pub fn tests_lock(&self) -> PathBuf {
        self.root.join("tests.lock")
    }
}

/// Replaces a file in one step, so that a reader or a crash never meets half of it.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let fresh = path.with_added_extension("new");
    fs::write(&fresh, contents)
        .and_then(|()| fs::rename(&fresh, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a directory and its parents.
pub fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}
