//! Why a list could not be read, in words that follow "failed to parse the output of function".

use thiserror::Error;

/// Why some bytes are not a ResourceList. Lines count from one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScanError {
    /// There is nothing in it but white space and comments.
    #[error("expected a ResourceList, found nothing")]
    Empty,
    /// The bytes are not UTF-8, or hold a NUL.
    #[error("line {line}: not text: {detail}")]
    NotText {
        /// Where the first wrong byte is.
        line: usize,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The YAML itself is broken.
    #[error("line {line}: {detail}")]
    Syntax {
        /// Where the parser stopped.
        line: usize,
        /// What it said.
        detail: String,
    },
    /// The document is a scalar or a sequence.
    #[error("line {line}: expected a ResourceList, found no mapping")]
    NotAMapping {
        /// Where the document's content starts.
        line: usize,
    },
    /// Something follows the document that holds the list.
    #[error("line {line}: expected one ResourceList, found a second document")]
    SecondDocument {
        /// Where the second document's content starts.
        line: usize,
    },
    /// A key of the envelope is missing.
    #[error("expected a ResourceList, found no {key}")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A key of the envelope is there twice.
    #[error("line {line}: {key} is given twice")]
    Duplicate {
        /// Where the second one is.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// A key of the envelope has a value that no ResourceList has.
    #[error("line {line}: {key} is {found}, expected {expected}")]
    Unexpected {
        /// Where the value is.
        line: usize,
        /// The key.
        key: &'static str,
        /// The value, shortened and in quotes, or what sort of thing it is.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// Collections are nested deeper than any reader would follow.
    #[error("line {line}: nested more than {limit} deep")]
    TooDeep {
        /// Where the limit is passed.
        line: usize,
        /// The limit.
        limit: usize,
    },
    /// Aliases in the results expand to far more than the list holds.
    #[error("line {line}: aliases expand to more than the list may hold")]
    AliasExpansion {
        /// Where the alias is that goes too far.
        line: usize,
    },
    /// Reading it would take memory out of proportion to its size.
    #[error("too complex to read: {detail}")]
    TooComplex {
        /// What there is too much of.
        detail: &'static str,
    },
}

/// Why a quick reading of a list ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The layout is one the quick way does not know for certain.
    Unsure,
    /// The layout is certain, and the envelope is wrong.
    Failed(ScanError),
}

// === impl Stop ===

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Self {
        Self::Failed(error)
    }
}
