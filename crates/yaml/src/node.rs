//! Values of a document and their positions in the text.

use crate::compare::is_null;

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

    /// Returns the value at a path of keys and, in sequences, decimal indices.
    ///
    /// Aliases are not followed; see [`resolve`](crate::resolve()).
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, part| match &node.value {
            Value::Sequence(items) => items.get(part.parse::<usize>().ok()?),
            _ => node.get(part),
        })
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
        Self::built(Value::Mapping(entries))
    }

    /// Returns a sequence without a position.
    #[must_use]
    pub fn sequence(items: Vec<Self>) -> Self {
        Self::built(Value::Sequence(items))
    }

    /// Returns a scalar without a position that is text, even if it looks like a number.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::scalar(text.into(), ScalarForm::Quoted)
    }

    /// Returns a copy without positions, which may become part of a tree from another text.
    ///
    /// The copy keeps the meaning; quotes and comments are those of the source and are lost.
    #[must_use]
    pub fn detached(&self) -> Self {
        let value = match &self.value {
            Value::Sequence(items) => Value::Sequence(items.iter().map(Self::detached).collect()),
            Value::Mapping(entries) => Value::Mapping(
                entries
                    .iter()
                    .map(|(key, value)| (key.detached(), value.detached()))
                    .collect(),
            ),
            value => value.clone(),
        };
        Self::built(value)
    }

    /// Sets the value at a path, and returns whether the path can have a value.
    ///
    /// Missing keys are appended, with a mapping for each further part of the path; the index after
    /// the last item appends an item. A null on the path becomes a mapping. Nothing changes if the
    /// path leads through another scalar or an alias, or to an index past the end.
    ///
    /// The value must be built or [`detached`](Self::detached), or come from the same text.
    #[must_use]
    pub fn set(&mut self, path: &[&str], value: Self) -> bool {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return true;
        };
        if is_null(self) {
            *self = nested(path, value);
            return true;
        }
        match &mut self.value {
            Value::Mapping(entries) => match entries
                .iter_mut()
                .find(|(key, _)| key.as_str() == Some(first))
            {
                Some((_, child)) => return child.set(rest, value),
                None => entries.push((Self::text(*first), nested(rest, value))),
            },
            Value::Sequence(items) => match first.parse::<usize>() {
                Ok(index) if index < items.len() => return items[index].set(rest, value),
                Ok(index) if index == items.len() => items.push(nested(rest, value)),
                _ => return false,
            },
            Value::Scalar { .. } | Value::Alias(..) => return false,
        }
        true
    }

    /// Removes the key or item at a path and returns its value, or `None` if there is none.
    pub fn remove(&mut self, path: &[&str]) -> Option<Self> {
        let (last, parents) = path.split_last()?;
        let parent = parents
            .iter()
            .try_fold(self, |node, part| match &mut node.value {
                Value::Mapping(entries) => entries
                    .iter_mut()
                    .find(|(key, _)| key.as_str() == Some(part))
                    .map(|(_, value)| value),
                Value::Sequence(items) => items.get_mut(part.parse::<usize>().ok()?),
                Value::Scalar { .. } | Value::Alias(..) => None,
            })?;
        match &mut parent.value {
            Value::Mapping(entries) => {
                let position = entries
                    .iter()
                    .position(|(key, _)| key.as_str() == Some(last))?;
                Some(entries.remove(position).1)
            }
            Value::Sequence(items) => {
                let index = last.parse().ok().filter(|index| *index < items.len())?;
                Some(items.remove(index))
            }
            Value::Scalar { .. } | Value::Alias(..) => None,
        }
    }

    fn scalar(text: String, form: ScalarForm) -> Self {
        let tag = None;
        Self::built(Value::Scalar { text, form, tag })
    }

    fn built(value: Value) -> Self {
        Self {
            value,
            start: 0,
            end: 0,
            flow: false,
            anchor: 0,
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::scalar(value.to_string(), ScalarForm::Plain)
    }
}

impl From<i64> for Node {
    fn from(value: i64) -> Self {
        Self::scalar(value.to_string(), ScalarForm::Plain)
    }
}

/// Returns mappings with one key each, one for every part of the path, around a value.
fn nested(path: &[&str], value: Node) -> Node {
    path.iter().rev().fold(value, |value, key| {
        Node::mapping(vec![(Node::text(*key), value)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_one, same};
    use rstest::rstest;

    #[rstest]
    #[case::key(&["a"], Some("1"))]
    #[case::item(&["list", "1", "x"], Some("2"))]
    #[case::missing_key(&["b"], None)]
    #[case::index_past_the_end(&["list", "2"], None)]
    #[case::key_of_a_sequence(&["list", "x"], None)]
    #[case::key_of_a_scalar(&["a", "b"], None)]
    fn finds_the_value_at_a_path(#[case] path: &[&str], #[case] expected: Option<&str>) {
        let root = parse_one("a: 1\nlist: [0, {x: 2}]\n").unwrap();
        assert_eq!(root.at(path).and_then(Node::as_str), expected);
    }

    #[rstest]
    #[case::existing_key(&["a"], Some("{a: new, n: , list: [0]}"))]
    #[case::new_keys(&["b", "c"], Some("{a: 1, n: , list: [0], b: {c: new}}"))]
    #[case::null_becomes_a_mapping(&["n", "c"], Some("{a: 1, n: {c: new}, list: [0]}"))]
    #[case::item(&["list", "0"], Some("{a: 1, n: , list: [new]}"))]
    #[case::appended_item(&["list", "1"], Some("{a: 1, n: , list: [0, new]}"))]
    #[case::index_past_the_end(&["list", "2"], None)]
    #[case::through_a_scalar(&["a", "b"], None)]
    fn sets_the_value_at_a_path(#[case] path: &[&str], #[case] expected: Option<&str>) {
        let text = "{a: 1, n: , list: [0]}";
        let mut root = parse_one(text).unwrap();
        assert_eq!(root.set(path, "new".into()), expected.is_some());
        assert!(same(&root, &parse_one(expected.unwrap_or(text)).unwrap()));
    }

    #[test]
    fn removes_keys_and_items() {
        let mut root = parse_one("{a: 1, list: [0, {x: 2}]}").unwrap();
        assert!(root.remove(&["list", "1", "x"]).is_some());
        assert!(root.remove(&["list", "0"]).is_some());
        assert!(root.remove(&["a"]).is_some());
        assert!(root.remove(&["a"]).is_none());
        assert!(root.remove(&["list", "1"]).is_none());
        assert!(same(&root, &parse_one("list: [{}]").unwrap()));
    }
}
