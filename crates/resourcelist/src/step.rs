//! The one stream of steps that JSON, YAML and what aliases stand for are all read as.

use std::borrow::Cow;

/// One step through a document, in the order it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A scalar, as text whatever its type.
    Text(Cow<'a, str>),
    /// A scalar that says there is nothing.
    Null,
    /// A mapping opens: keys and values follow in turn.
    Map,
    /// A sequence opens.
    Seq,
    /// The innermost open mapping or sequence closes.
    End,
}

// === impl Step ===

impl Step<'_> {
    /// What it costs whoever has to look at this.
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
