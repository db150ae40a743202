//! Errors of reading a list; the texts follow "failed to parse the output of function".

use thiserror::Error;

/// The reason why some bytes are not a ResourceList. Line numbers start at 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The input has only white space and comments.
    #[error("expected a ResourceList, found nothing")]
    Empty,
    /// The input is not valid UTF-8 or contains a NUL byte.
    #[error("line {line}: not text: {detail}")]
    NotText {
        /// Line of the first invalid byte.
        line: usize,
        /// Description of the invalid byte.
        detail: &'static str,
    },
    /// The input is not valid YAML.
    #[error("line {line}: {detail}")]
    Syntax {
        /// Line at which the parser stopped.
        line: usize,
        /// Error message of the parser.
        detail: String,
    },
    /// The document is a scalar or a sequence instead of a mapping.
    #[error("line {line}: expected a ResourceList, found no mapping")]
    NotAMapping {
        /// First line of the document's content.
        line: usize,
    },
    /// A second document follows the list.
    #[error("line {line}: expected one ResourceList, found a second document")]
    SecondDocument {
        /// First line of the second document's content.
        line: usize,
    },
    /// A required key of the envelope is missing.
    #[error("expected a ResourceList, found no {key}")]
    Missing {
        /// Name of the key.
        key: &'static str,
    },
    /// A key of the envelope occurs twice.
    #[error("line {line}: {key} is given twice")]
    Duplicate {
        /// Line of the second occurrence.
        line: usize,
        /// Name of the key.
        key: &'static str,
    },
    /// A key of the envelope has a value that is not allowed in a ResourceList.
    #[error("line {line}: {key} is {found}, expected {expected}")]
    Unexpected {
        /// Line of the value.
        line: usize,
        /// Name of the key.
        key: &'static str,
        /// The value, shortened and quoted, or its type if it is not a scalar.
        found: String,
        /// The allowed values.
        expected: String,
    },
    /// Collections are nested too deeply.
    #[error("line {line}: nested more than {limit} deep")]
    TooDeep {
        /// Line at which the limit is exceeded.
        line: usize,
        /// Maximum nesting depth.
        limit: usize,
    },
    /// Aliases in the results expand to far more data than the list contains.
    #[error("line {line}: aliases expand to more than the list may hold")]
    AliasExpansion {
        /// Line of the alias that exceeds the limit.
        line: usize,
    },
    /// Reading the list would need memory out of proportion to its size.
    #[error("too complex to read: {detail}")]
    TooComplex {
        /// Name of the part that is too large.
        detail: &'static str,
    },
}

/// The reason why the fast scan stopped.
#[derive(Debug)]
pub(crate) enum FastScanError {
    /// The layout is not one that the fast path handles, so the whole list has to be parsed.
    UnsupportedLayout,
    /// The layout is supported, and the envelope is invalid.
    Invalid(ScanError),
}

// === impl FastScanError ===

impl From<ScanError> for FastScanError {
    fn from(error: ScanError) -> Self {
        Self::Invalid(error)
    }
}
