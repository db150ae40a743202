//! The collections that the collector enters, and the meaning of keys in each of them.

use super::result_field::ResultField;
use crate::event::NodeEvent;

/// A collection that the collector enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
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
pub(super) enum ValueRole {
    /// A value of the envelope.
    Envelope(EnvelopeKey),
    /// A sequence that the collector enters.
    Sequence(Scope),
    /// A mapping that the collector enters.
    Mapping(Scope),
    /// A scalar field of the current result.
    ResultField(ResultField),
    /// A mapping, or a sequence of mappings, that is merged into the surrounding mapping.
    Merge,
    /// A value that the collector ignores.
    Ignored,
}

/// A key of the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvelopeKey {
    ApiVersion,
    Kind,
    Results,
}

// === impl Scope ===

impl Scope {
    pub(super) fn results(event: &NodeEvent<'_>) -> Self {
        if *event == NodeEvent::SequenceStart {
            Self::Results
        } else {
            Self::WrappedResults
        }
    }
}

// === impl ValueRole ===

impl ValueRole {
    /// Returns the role of the value of `key` in `scope`.
    pub(super) fn of(scope: Scope, key: &str) -> Self {
        match (scope, key) {
            // Tag names are free: any key of the other scopes may be a tag.
            (Scope::Tags, _) => Self::ResultField(ResultField::Tag(key.to_owned())),
            (_, "<<") => Self::Merge,

            (Scope::Root, "apiVersion") => Self::Envelope(EnvelopeKey::ApiVersion),
            (Scope::Root, "kind") => Self::Envelope(EnvelopeKey::Kind),
            (Scope::Root, "results") => Self::Envelope(EnvelopeKey::Results),
            (Scope::WrappedResults, "items") => Self::Sequence(Scope::Results),

            (Scope::Result, "message") => Self::ResultField(ResultField::Message),
            (Scope::Result, "severity") => Self::ResultField(ResultField::Severity),
            (Scope::Result, "resourceRef") => Self::Mapping(Scope::ResourceRef),
            (Scope::Result, "field") => Self::Mapping(Scope::Field),
            (Scope::Result, "file") => Self::Mapping(Scope::File),
            (Scope::Result, "tags") => Self::Mapping(Scope::Tags),

            (Scope::ResourceRef, "apiVersion") => {
                Self::ResultField(ResultField::ResourceApiVersion)
            }
            (Scope::ResourceRef, "kind") => Self::ResultField(ResultField::ResourceKind),
            (Scope::ResourceRef, "metadata") => Self::Mapping(Scope::Metadata),
            (Scope::ResourceRef | Scope::Metadata, "namespace") => {
                Self::ResultField(ResultField::ResourceNamespace)
            }
            (Scope::ResourceRef | Scope::Metadata, "name") => {
                Self::ResultField(ResultField::ResourceName)
            }

            (Scope::Field, "path") => Self::ResultField(ResultField::FieldPath),
            (Scope::Field, "currentValue") => Self::ResultField(ResultField::FieldCurrentValue),
            (Scope::Field, "proposedValue" | "suggestedValue") => {
                Self::ResultField(ResultField::FieldProposedValue)
            }

            (Scope::File, "path") => Self::ResultField(ResultField::FilePath),
            (Scope::File, "index") => Self::ResultField(ResultField::FileIndex),

            _ => Self::Ignored,
        }
    }
}

// === impl EnvelopeKey ===

impl EnvelopeKey {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApiVersion => "apiVersion",
            Self::Kind => "kind",
            Self::Results => "results",
        }
    }
}
