//! Where in a list the collector is, and what a key means there.

use super::part::Part;
use crate::step::Step;

/// A collection the collector enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The list itself.
    Root,
    /// The sequence of results.
    Results,
    /// The first form results had: a mapping with a name and the sequence under `items`.
    WrappedResults,
    /// One result.
    Result,
    /// Names a resource.
    ResourceRef,
    /// Holds a resource's name in the first form results had.
    Metadata,
    /// Names a field.
    Field,
    /// Names a file.
    File,
    /// Free words about a result.
    Tags,
}

/// What the value after a key is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    Envelope(Key),
    /// A sequence to enter.
    Sequence(Place),
    /// A mapping to enter.
    Mapping(Place),
    /// A scalar to put into the result at hand.
    Part(Part),
    /// Mappings whose entries count as the surrounding mapping's own.
    Merge,
    Ignored,
}

/// A key of the list that the scan reads.
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
            // Tags are the function's own words: any of them may be one of ours.
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
