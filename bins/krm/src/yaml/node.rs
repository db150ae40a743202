//! Values of a document and their positions in the text.

/// A value and its byte range in the text.
///
/// The range of a block collection runs from its first child to its last; that of a block scalar
/// ends with the last line that is not blank. An empty value has no text: its range is a hint.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value itself.
    pub value: Value,
    /// Byte offset of the first byte.
    pub start: usize,
    /// Byte offset after the last byte.
    pub end: usize,
    /// Whether this is a flow collection: `{…}` or `[…]`.
    pub flow: bool,
    /// Number of the anchor, as used by aliases; 0 for none.
    pub anchor: usize,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value, with escapes and folds resolved.
    Scalar {
        /// The resolved text.
        text: String,
        /// The notation of the scalar in the source.
        form: ScalarForm,
        /// A tag such as `tag:yaml.org,2002:str`, if there is one.
        tag: Option<String>,
    },
    /// An alias: the name in `*name`, and the number of the anchor.
    Alias(String, usize),
    /// A list of values.
    Sequence(Vec<Node>),
    /// A mapping: keys and values in the order of the text.
    Mapping(Vec<(Node, Node)>),
}

/// The notation of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarForm {
    /// A scalar without quotes, whose type depends on its text.
    Plain,
    /// A scalar in single or double quotes, which is always text.
    Quoted,
    /// A block introduced by `|` or `>`.
    Block,
}

// === impl Node ===

impl Node {
    /// Returns the text of a scalar, or `None` for other values.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a key, or `None` if this is not a mapping with that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(known, _)| known.as_str() == Some(key))
            .map(|(_, value)| value)
    }

    /// Returns the value at a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns the entries of a mapping; empty for other values.
    #[must_use]
    pub fn entries(&self) -> &[(Self, Self)] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a sequence; empty for other values.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// Returns whether this is a null without any text, as after `key:`.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, form: ScalarForm::Plain, .. } if text.is_empty())
    }

    /// Returns whether this is a mapping or sequence without members.
    #[must_use]
    pub fn is_empty_collection(&self) -> bool {
        match &self.value {
            Value::Mapping(entries) => entries.is_empty(),
            Value::Sequence(items) => items.is_empty(),
            _ => false,
        }
    }

    /// Returns a mapping without a position, for trees that are built and not parsed.
    #[must_use]
    pub fn mapping(entries: Vec<(Self, Self)>) -> Self {
        Self {
            value: Value::Mapping(entries),
            start: 0,
            end: 0,
            flow: false,
            anchor: 0,
        }
    }

    /// Returns a quoted scalar without a position.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let value = Value::Scalar {
            text: text.into(),
            form: ScalarForm::Quoted,
            tag: None,
        };
        Self {
            value,
            start: 0,
            end: 0,
            flow: false,
            anchor: 0,
        }
    }
}
