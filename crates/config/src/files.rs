//! The two configuration files: where they are, how they are read, and what makes them unreadable.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{Binaries, Problem, Source};

mod exec;
mod pod_cache;
mod yaml;

pub(crate) use exec::ExecEntry;
pub(crate) use pod_cache::PodCacheEntry;

/// Where the files are, and which of them matter.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The directory of cached executables.
    pub functions_dir: PathBuf,
    /// The exec runtime's file.
    pub config: PathBuf,
    /// Whether the exec runtime's file is wanted.
    pub config_wanted: Wanted,
    /// The pod runtime's file.
    pub pod_cache_config: PathBuf,
    /// Whether the pod runtime's file is wanted.
    pub pod_cache_wanted: Wanted,
    /// Where bare image names come from.
    pub default_prefix: String,
    /// Whether a configured binary that is missing is a problem.
    pub binaries: Binaries,
}

/// Whether a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nobody needs what it says.
    No,
    /// Missing, it is as good as an empty one.
    IfThere,
    /// Somebody asked for it: it must exist.
    Required,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be opened or read.
    #[error("cannot read {} ({flag}): {error}", file.display())]
    Read {
        /// What says where the file is.
        flag: &'static str,
        /// The file as it was given.
        file: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// Its content makes no sense.
    #[error("{place}: {message}")]
    Malformed {
        /// The file and line.
        place: Source,
        /// What is wrong there.
        message: String,
    },
    /// It lists functions but there is no directory to find them in.
    #[error(
        "{place} lists functions, but the directory {} cannot be read: {error}; set --functions",
        directory.display()
    )]
    FunctionsDirectory {
        /// The file.
        place: Source,
        /// The directory it needs.
        directory: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Config,
    PodCache,
}

/// What a file says, with what is odd about it.
#[derive(Clone, Debug)]
pub(crate) struct Parsed<Entry> {
    pub(crate) entries: Vec<Entry>,
    pub(crate) problems: Vec<Problem>,
}

// === impl FileOptions ===

impl FileOptions {
    pub(crate) fn path(&self, file: File) -> &Path {
        match file {
            File::Config => &self.config,
            File::PodCache => &self.pod_cache_config,
        }
    }

    pub(crate) fn source(&self, file: File) -> Source {
        let path: Arc<Path> = Arc::from(self.path(file));
        match file {
            File::Config => Source::ConfigFile {
                file: path,
                line: 0,
            },
            File::PodCache => Source::PodCacheFile {
                file: path,
                line: 0,
            },
        }
    }

    /// The file's text; `None` where it is not wanted, or need not exist and does not.
    pub(crate) fn read(&self, file: File) -> Result<Option<String>, ConfigError> {
        let (wanted, flag) = match file {
            File::Config => (self.config_wanted, "--config"),
            File::PodCache => (self.pod_cache_wanted, "--pod-cache-config"),
        };
        if wanted == Wanted::No {
            return Ok(None);
        }
        match std::fs::read_to_string(self.path(file)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted == Wanted::IfThere => {
                Ok(None)
            }
            Err(error) => Err(ConfigError::Read {
                flag,
                file: self.path(file).to_owned(),
                error,
            }),
        }
    }

    pub(crate) fn parse_config(&self, text: &str) -> Result<Parsed<ExecEntry>, ConfigError> {
        let parsed = exec::parse(text, &self.source(File::Config), &self.default_prefix)?;
        if !parsed.entries.is_empty()
            && let Err(error) = std::fs::read_dir(&self.functions_dir)
        {
            return Err(ConfigError::FunctionsDirectory {
                place: self.source(File::Config),
                directory: self.functions_dir.clone(),
                error,
            });
        }
        Ok(parsed)
    }

    pub(crate) fn parse_pod_cache(&self, text: &str) -> Result<Parsed<PodCacheEntry>, ConfigError> {
        pod_cache::parse(text, &self.source(File::PodCache), &self.default_prefix)
    }
}

// === impl ConfigError ===

impl ConfigError {
    /// The error as a problem of the table that stays in use.
    pub(crate) fn problem(&self, whole_file: &Source) -> Problem {
        match self {
            Self::Malformed { place, message } => Problem::error(place, message),
            other => Problem::error(whole_file, other.to_string()),
        }
    }
}

// === impl Parsed ===

impl<Entry> Default for Parsed<Entry> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            problems: Vec::new(),
        }
    }
}
