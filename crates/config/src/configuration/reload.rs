//! Reloads the files when they change.
//!
//! Directories are watched, not files: an editor replaces a file, and a mounted `ConfigMap` swaps
//! a symlink beside it. Both replace the inode to which a watch of the file would be bound.

mod watch;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use watch::{WaitOutcome, Watch, WatchGuard};

use super::{
    Configuration, Outcome,
    metrics::{self, Metrics},
};
use crate::files::File;

/// Time without events before files are read, because one edit causes several events.
const QUIET_PERIOD: Duration = Duration::from_millis(50);
/// Longest delay of a reload while events keep coming.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// A guard for the watch of the files; dropping it ends the watch and its thread.
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct Reload {
    _guard: WatchGuard,
}

/// The reason why files cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The inotify watch cannot be created.
    #[error("cannot watch the configuration files")]
    Watch(#[source] io::Error),
    /// The thread cannot be started.
    #[error("cannot start the thread that reads changed files")]
    Thread(#[source] io::Error),
}

// === impl Configuration ===

impl Configuration {
    /// Starts a thread that reloads the files when they change, until the guard is dropped.
    ///
    /// After an invalid edit the last valid content stays in use, and the table has a problem that
    /// names the line.
    pub fn spawn_reload(&self) -> Result<Reload, ReloadError> {
        let (watch, guard) = Watch::new().map_err(ReloadError::Watch)?;
        for directory in self.directories() {
            match watch.add(&directory) {
                Ok(()) => {}
                Err(error) if !directory.exists() => {
                    tracing::debug!(directory = %directory.display(), %error, "nothing to watch");
                }
                Err(error) => return Err(ReloadError::Watch(error)),
            }
        }
        metrics::observe_problems(Arc::downgrade(&self.shared));
        let configuration = self.clone();
        thread::Builder::new()
            .name("config-reload".to_owned())
            .spawn(move || {
                let metrics = Metrics::new();
                // Changes between loading and watching cause no event.
                configuration.reload_files(&metrics);
                while wait_until_quiet(&watch) {
                    configuration.reload_files(&metrics);
                }
            })
            .map_err(ReloadError::Thread)?;
        Ok(Reload { _guard: guard })
    }

    /// Reads both files again and checks the binaries again.
    fn reload_files(&self, metrics: &Metrics) {
        for file in [File::Config, File::PodCache] {
            let outcome = self.reload(file);
            let source = self.options().source(file);
            metrics.reloaded(source.kind(), outcome);
            match outcome {
                Outcome::Applied => tracing::info!(%source, "configuration file reloaded"),
                Outcome::Rejected => {
                    tracing::warn!(%source, "configuration file rejected, the last good one stays");
                }
                Outcome::Unchanged => {}
            }
        }
        self.recheck_binaries();
    }

    /// Returns the directories of both files and of the functions.
    fn directories(&self) -> BTreeSet<PathBuf> {
        let options = self.options();
        let parent = |file: &Path| match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        BTreeSet::from([
            parent(&options.config),
            parent(&options.pod_cache_config),
            options.functions_dir.clone(),
        ])
    }
}

/// Waits for a change and then for [`QUIET_PERIOD`] without one.
///
/// Returns `false` once the guard is dropped.
fn wait_until_quiet(watch: &Watch) -> bool {
    if watch.wait(None) == WaitOutcome::Closed {
        return false;
    }
    let deadline = Instant::now() + LONGEST_DELAY;
    loop {
        match watch.wait(Some(QUIET_PERIOD)) {
            WaitOutcome::Change if Instant::now() < deadline => {}
            WaitOutcome::Change | WaitOutcome::Timeout => return true,
            WaitOutcome::Closed => return false,
        }
    }
}
