//! Sources of configuration entries, and their problems.

use std::{fmt, path::Path, sync::Arc};

/// The origin of a configuration entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The entry is in the exec runtime's file.
    ConfigFile {
        /// Path of the file, as it was given.
        file: Arc<Path>,
        /// Line number from 1; 0 is the file as a whole.
        line: u64,
    },
    /// The entry is in the pod runtime's file.
    PodCacheFile {
        /// Path of the file, as it was given.
        file: Arc<Path>,
        /// Line number from 1; 0 is the file as a whole.
        line: u64,
    },
    /// The entry is a `FunctionConfig` object.
    Object {
        /// Namespace of the object.
        namespace: Arc<str>,
        /// Name of the object.
        name: Arc<str>,
    },
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An entry was ignored or overridden; functions still run as configured elsewhere.
    Warning,
    /// An entry has no effect, or its function will fail.
    Error,
}

/// A problem of the configuration that an operator should correct.
///
/// The runner keeps serving.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// The entry that has the problem.
    pub source: Source,
    /// Severity of the problem.
    pub severity: Severity,
    /// Description of the problem.
    pub message: String,
}

// === impl Source ===

impl Source {
    /// Returns the kind of source for metrics: `config`, `pod-cache-config` or `functionconfig`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ConfigFile { .. } => "config",
            Self::PodCacheFile { .. } => "pod-cache-config",
            Self::Object { .. } => "functionconfig",
        }
    }

    /// Returns the same file at another line; an object, which has no lines, stays the same.
    #[must_use]
    pub(crate) fn at_line(&self, line: u64) -> Self {
        match self {
            Self::ConfigFile { file, .. } => Self::ConfigFile {
                file: file.clone(),
                line,
            },
            Self::PodCacheFile { file, .. } => Self::PodCacheFile {
                file: file.clone(),
                line,
            },
            Self::Object { .. } => self.clone(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConfigFile { file, line: 0 } | Self::PodCacheFile { file, line: 0 } => {
                write!(f, "{}", file.display())
            }
            Self::ConfigFile { file, line } | Self::PodCacheFile { file, line } => {
                write!(f, "{}:{line}", file.display())
            }
            Self::Object { namespace, name } => write!(f, "FunctionConfig {namespace}/{name}"),
        }
    }
}

// === impl Problem ===

impl Problem {
    /// Returns a problem after which functions still run as configured elsewhere.
    #[must_use]
    pub fn warning(source: &Source, message: impl Into<String>) -> Self {
        Self {
            source: source.clone(),
            severity: Severity::Warning,
            message: message.into(),
        }
    }

    /// Returns a problem because of which an entry has no effect or its function fails.
    #[must_use]
    pub fn error(source: &Source, message: impl Into<String>) -> Self {
        Self {
            source: source.clone(),
            severity: Severity::Error,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}
