//! The events that JSON, YAML and expanded aliases are read as.

use std::borrow::Cow;

/// One event of a document, in document order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeEvent<'a> {
    /// A scalar of any type, as text.
    Scalar(Cow<'a, str>),
    /// A null scalar.
    Null,
    /// The start of a mapping; keys and values follow alternately.
    MappingStart,
    /// The start of a sequence.
    SequenceStart,
    /// The end of the innermost open mapping or sequence.
    End,
}

// === impl NodeEvent ===

impl NodeEvent<'_> {
    /// Returns the cost of processing this event, counted against the limit on alias expansion.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Scalar(text) => 1 + text.len(),
            Self::Null | Self::MappingStart | Self::SequenceStart | Self::End => 1,
        }
    }

    pub(crate) fn borrowed(&self) -> NodeEvent<'_> {
        match self {
            Self::Scalar(text) => NodeEvent::Scalar(Cow::Borrowed(text)),
            Self::Null => NodeEvent::Null,
            Self::MappingStart => NodeEvent::MappingStart,
            Self::SequenceStart => NodeEvent::SequenceStart,
            Self::End => NodeEvent::End,
        }
    }

    pub(crate) fn to_static(&self) -> NodeEvent<'static> {
        match self.borrowed() {
            NodeEvent::Scalar(text) => NodeEvent::Scalar(Cow::Owned(text.into_owned())),
            NodeEvent::Null => NodeEvent::Null,
            NodeEvent::MappingStart => NodeEvent::MappingStart,
            NodeEvent::SequenceStart => NodeEvent::SequenceStart,
            NodeEvent::End => NodeEvent::End,
        }
    }
}
