//! Where a statement came from, and what is wrong with it.

use std::{fmt, path::Path, sync::Arc};

/// Where a statement of the configuration was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A line of the exec runtime's file; line 0 is the file as a whole.
    ConfigFile {
        /// The file as it was given.
        file: Arc<Path>,
        /// Counted from 1.
        line: u64,
    },
    /// A line of the pod runtime's file; line 0 is the file as a whole.
    PodCacheFile {
        /// The file as it was given.
        file: Arc<Path>,
        /// Counted from 1.
        line: u64,
    },
    /// A `FunctionConfig` object.
    Object {
        /// Where it lives.
        namespace: Arc<str>,
        /// Its name there.
        name: Arc<str>,
    },
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something was ignored or overridden; functions still run as configured elsewhere.
    Warning,
    /// A statement has no effect, or its function will fail.
    Error,
}

/// Something an operator should put right. Never a reason to stop serving.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// Where to look.
    pub source: Source,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in words.
    pub message: String,
}

// === impl Source ===

impl Source {
    /// The kind of source, for metrics: `config`, `pod-cache-config`, `functionconfig`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ConfigFile { .. } => "config",
            Self::PodCacheFile { .. } => "pod-cache-config",
            Self::Object { .. } => "functionconfig",
        }
    }

    /// The same file at another line; objects have no lines.
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
    pub(crate) fn warning(source: &Source, message: impl Into<String>) -> Self {
        Self {
            source: source.clone(),
            severity: Severity::Warning,
            message: message.into(),
        }
    }

    pub(crate) fn error(source: &Source, message: impl Into<String>) -> Self {
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
