//! The scalar fields of a result.

use std::collections::btree_map::Entry;

use crate::result::{Field, File, FunctionResult, ResourceRef, Severity};

/// A scalar field of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResultField {
    Message,
    Severity,
    ResourceApiVersion,
    ResourceKind,
    ResourceNamespace,
    ResourceName,
    FieldPath,
    FieldCurrentValue,
    FieldProposedValue,
    FilePath,
    FileIndex,
    Tag(String),
}

// === impl ResultField ===

impl ResultField {
    /// Stores `text` in the matching field of `result`.
    ///
    /// The last of several values is kept, but a value from a merge key (`merged`) does not
    /// replace an existing one. `set_fields` lists the fields of `result` that have a value, except for
    /// tags, whose number is not bounded.
    pub(super) fn set(
        self,
        result: &mut FunctionResult,
        set_fields: &mut Vec<Self>,
        text: String,
        merged: bool,
    ) {
        if !matches!(self, Self::Tag(_)) {
            if !set_fields.contains(&self) {
                set_fields.push(self.clone());
            } else if merged {
                return;
            }
        }
        let target = match self {
            Self::Message => &mut result.message,
            Self::Severity => {
                result.severity = Severity::from_word(&text);
                return;
            }
            Self::ResourceApiVersion => &mut resource(result).api_version,
            Self::ResourceKind => &mut resource(result).kind,
            Self::ResourceNamespace => &mut resource(result).namespace,
            Self::ResourceName => &mut resource(result).name,
            Self::FieldPath => &mut field(result).path,
            Self::FieldCurrentValue => field(result).current_value.get_or_insert_default(),
            Self::FieldProposedValue => field(result).proposed_value.get_or_insert_default(),
            Self::FilePath => &mut file(result).path,
            Self::FileIndex => {
                file(result).index = text.parse().unwrap_or_default();
                return;
            }
            Self::Tag(name) => match result.tags.entry(name) {
                Entry::Occupied(_) if merged => return,
                entry => entry.or_default(),
            },
        };
        *target = text;
    }
}

fn resource(result: &mut FunctionResult) -> &mut ResourceRef {
    result.resource_ref.get_or_insert_default()
}

fn field(result: &mut FunctionResult) -> &mut Field {
    result.field.get_or_insert_default()
}

fn file(result: &mut FunctionResult) -> &mut File {
    result.file.get_or_insert_default()
}
