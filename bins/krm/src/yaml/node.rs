//! One value of a document and its place in the text.

/// A value, with the bytes it occupies.
///
/// For a block collection the place runs from its first child to its last; for a block scalar it
/// ends with the last line that is not blank. An empty value has no text: its place is a hint.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// A flow collection: `{…}` or `[…]`.
    pub flow: bool,
    /// The anchor's number, as aliases refer to it; 0 for none.
    pub anchor: usize,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value, its escapes and folds undone.
    Scalar {
        /// The text meant.
        text: String,
        /// How it was written.
        form: ScalarForm,
        /// A tag such as `tag:yaml.org,2002:str`.
        tag: Option<String>,
    },
    /// `*name`, and the number of its anchor.
    Alias(String, usize),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the text.
    Mapping(Vec<(Node, Node)>),
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarForm {
    /// Without quotes: what it means depends on what it looks like.
    Plain,
    /// In single or double quotes: text, whatever it looks like.
    Quoted,
    /// A block introduced by `|` or `>`.
    Block,
}

// === impl Node ===

impl Node {
    /// The text of a scalar.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The value of a mapping's key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(known, _)| known.as_str() == Some(key))
            .map(|(_, value)| value)
    }

    /// The value at the end of a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// A mapping's entries; none for everything else.
    #[must_use]
    pub fn entries(&self) -> &[(Self, Self)] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// A sequence's items; none for everything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// Whether this is nothing written as nothing: `key:` and no more.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, form: ScalarForm::Plain, .. } if text.is_empty())
    }

    /// Whether this is a collection without a member.
    #[must_use]
    pub fn is_empty_collection(&self) -> bool {
        match &self.value {
            Value::Mapping(entries) => entries.is_empty(),
            Value::Sequence(items) => items.is_empty(),
            _ => false,
        }
    }

    /// A mapping of no place, for trees that are built rather than read.
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

    /// A quoted scalar of no place.
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
