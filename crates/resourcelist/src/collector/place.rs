//! The positions in a list that the collector enters, and the meaning of keys at each position.

use super::part::Part;
use crate::step::Step;

/// A collection that the collector enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The ResourceList.
    Root,
    /// The sequence of results.
    Results,
    /// The original form of results: a mapping with a name and the sequence under `items`.
    WrappedResults,
    /// A single result.
    Result,
    /// The `resourceRef` of a result.
    ResourceRef,
    /// The `metadata` of a `resourceRef`, which holds the name in the original form of results.
    Metadata,
    /// The `field` of a result.
    Field,
    /// The `file` of a result.
    File,
    /// The `tags` of a result.
    Tags,
}

/// The purpose of the value that follows a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    Envelope(Key),
    /// A sequence that the collector enters.
    Sequence(Place),
    /// A mapping that the collector enters.
    Mapping(Place),
    /// A scalar part of the current result.
    Part(Part),
    /// Mappings whose entries are merged into the surrounding mapping.
    Merge,
    Ignored,
}

/// A key of the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    ApiVersion,
    Kind,
    Results,
}

// === impl Place ===

impl Place {
    pub(super) fn results(step: &Step<'_>) -> Self {
        if *step == Step::Seq {
            Self::Results
        } else {
            Self::WrappedResults
        }
    }
}

// === impl Slot ===

impl Slot {
    pub(super) fn of(place: Place, key: &str) -> Self {
        match (place, key) {
            // Tag names are free: any key of the other places may be a tag.
            (Place::Tags, _) => Self::Part(Part::Tag(key.to_owned())),
            (_, "<<") => Self::Merge,

            (Place::Root, "apiVersion") => Self::Envelope(Key::ApiVersion),
            (Place::Root, "kind") => Self::Envelope(Key::Kind),
            (Place::Root, "results") => Self::Envelope(Key::Results),
            (Place::WrappedResults, "items") => Self::Sequence(Place::Results),

            (Place::Result, "message") => Self::Part(Part::Message),
            (Place::Result, "severity") => Self::Part(Part::Severity),
            (Place::Result, "resourceRef") => Self::Mapping(Place::ResourceRef),
            (Place::Result, "field") => Self::Mapping(Place::Field),
            (Place::Result, "file") => Self::Mapping(Place::File),
            (Place::Result, "tags") => Self::Mapping(Place::Tags),

            (Place::ResourceRef, "apiVersion") => Self::Part(Part::ResourceApiVersion),
            (Place::ResourceRef, "kind") => Self::Part(Part::ResourceKind),
            (Place::ResourceRef, "metadata") => Self::Mapping(Place::Metadata),
            (Place::ResourceRef | Place::Metadata, "namespace") => {
                Self::Part(Part::ResourceNamespace)
            }
            (Place::ResourceRef | Place::Metadata, "name") => Self::Part(Part::ResourceName),

            (Place::Field, "path") => Self::Part(Part::FieldPath),
            (Place::Field, "currentValue") => Self::Part(Part::FieldCurrentValue),
            (Place::Field, "proposedValue" | "suggestedValue") => {
                Self::Part(Part::FieldProposedValue)
            }

            (Place::File, "path") => Self::Part(Part::FilePath),
            (Place::File, "index") => Self::Part(Part::FileIndex),

            _ => Self::Ignored,
        }
    }
}

// === impl Key ===

impl Key {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApiVersion => "apiVersion",
            Self::Kind => "kind",
            Self::Results => "results",
        }
    }
}
