//! Reads the two configuration files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use runner_core::{BadDuration, BadImage, with_causes};

use crate::{BadCount, Binaries, Problem, Source};

mod exec;
mod pod_cache;
mod yaml;

pub(crate) use exec::ExecEntry;
pub(crate) use pod_cache::PodCacheEntry;

/// Paths and handling of the configuration files.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Directory of cached executables (`--functions`).
    pub functions_dir: PathBuf,
    /// Path of the exec runtime's file (`--config`).
    pub config: PathBuf,
    /// Need for the exec runtime's file.
    pub config_wanted: Wanted,
    /// Path of the pod runtime's file (`--pod-cache-config`).
    pub pod_cache_config: PathBuf,
    /// Need for the pod runtime's file.
    pub pod_cache_wanted: Wanted,
    /// Registry and path that are prepended to bare image names.
    pub default_prefix: String,
    /// Handling of missing binaries.
    pub binaries: Binaries,
}

/// The need for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The file is not needed and not read.
    No,
    /// The file is optional; a missing file counts as empty.
    Optional,
    /// The file was requested explicitly and must exist.
    Required,
}

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be opened or read.
    #[error("cannot read {} ({flag})", file.display())]
    Read {
        /// Command line flag that sets the path of the file.
        flag: &'static str,
        /// Path of the file, as it was given.
        file: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The content of the file is invalid.
    #[error("{location}: {message}")]
    Malformed {
        /// File and line of the error.
        location: Source,
        /// Description of the error.
        message: String,
    },
    /// An entry of the file is invalid.
    #[error("{location}")]
    Entry {
        /// File and line of the entry.
        location: Source,
        /// The invalid field of the entry.
        #[source]
        error: EntryError,
    },
    /// The file lists functions, but the functions directory cannot be read.
    #[error(
        "{location} lists functions, but the directory {} cannot be read (set --functions)",
        directory.display()
    )]
    FunctionsDirectory {
        /// The configuration file.
        location: Source,
        /// Path of the functions directory.
        directory: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
}

/// The reason why an entry of a file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The image is malformed.
    #[error(transparent)]
    Image(#[from] BadImage),
    /// The time to live is malformed.
    #[error("timeToLive")]
    TimeToLive(#[source] BadDuration),
    /// A number is out of range.
    #[error("{field}")]
    Count {
        /// Name of the field.
        field: &'static str,
        /// The rejected number.
        #[source]
        error: BadCount,
    },
}

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Config,
    PodCache,
}

/// The entries of a file, and its problems.
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

    /// Returns the file's text, or `None` if the file is not needed, or optional and missing.
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
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted == Wanted::Optional => {
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
                location: self.source(File::Config),
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
    /// Converts the error into a problem of the table that stays in use.
    pub(crate) fn problem(&self, whole_file: &Source) -> Problem {
        match self {
            Self::Malformed { location, message } => Problem::error(location, message),
            Self::Entry { location, error } => Problem::error(location, with_causes(error)),
            other => Problem::error(whole_file, with_causes(other)),
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
