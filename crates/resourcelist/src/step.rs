//! The common stream of steps that JSON, YAML and expanded aliases are read as.

use std::borrow::Cow;

/// One step through a document, in document order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A scalar of any type, as text.
    Text(Cow<'a, str>),
    /// A null scalar.
    Null,
    /// The start of a mapping; keys and values follow alternately.
    Map,
    /// The start of a sequence.
    Seq,
    /// The end of the innermost open mapping or sequence.
    End,
}

// === impl Step ===

impl Step<'_> {
    /// Returns the cost of processing this step, counted against the limit on alias expansion.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => 1 + text.len(),
            Self::Null | Self::Map | Self::Seq | Self::End => 1,
        }
    }

    pub(crate) fn borrowed(&self) -> Step<'_> {
        match self {
            Self::Text(text) => Step::Text(Cow::Borrowed(text)),
            Self::Null => Step::Null,
            Self::Map => Step::Map,
            Self::Seq => Step::Seq,
            Self::End => Step::End,
        }
    }

    pub(crate) fn to_static(&self) -> Step<'static> {
        match self.borrowed() {
            Step::Text(text) => Step::Text(Cow::Owned(text.into_owned())),
            Step::Null => Step::Null,
            Step::Map => Step::Map,
            Step::Seq => Step::Seq,
            Step::End => Step::End,
        }
    }
}
