//! Parses a list into nodes with their positions in the text.

use saphyr_parser::{Event, Parser, Span};

/// A value and the byte offset of its start.
#[derive(Debug)]
pub struct Node {
    pub value: Value,
    pub start: usize,
    /// Whether the value is written in braces or brackets.
    pub flow: bool,
}

#[derive(Debug)]
pub enum Value {
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
    Alias,
}

/// Parses the first document of a text.
pub fn parse(text: &str) -> Result<Node, String> {
    // The parser reports positions in characters; slices need bytes.
    let mut bytes: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    bytes.push(text.len());
    let mut open: Vec<(Node, Option<Node>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span): (Event<'_>, Span) = event.map_err(|error| error.to_string())?;
        let start = bytes.get(span.start.index()).copied().unwrap_or(text.len());
        let node = |value| Node {
            value,
            start,
            flow: text[start..].starts_with(['{', '[']),
        };
        let done = match event {
            Event::MappingStart(..) => {
                open.push((node(Value::Mapping(Vec::new())), None));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push((node(Value::List(Vec::new())), None));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => open.pop().map(|(node, _)| node),
            Event::Scalar(value, ..) => Some(node(Value::Text(value.into_owned()))),
            Event::Alias(_) => Some(node(Value::Alias)),
            _ => None,
        };
        let Some(done) = done else { continue };
        match open.last_mut() {
            None => return Ok(done),
            Some((parent, key)) => match &mut parent.value {
                Value::Mapping(entries) => match key.take() {
                    Some(key) => entries.push((key, done)),
                    None => *key = Some(done),
                },
                Value::List(items) => items.push(done),
                Value::Text(_) | Value::Alias => {}
            },
        }
    }
    Err("the input is empty".to_owned())
}

// === impl Node ===

impl Node {
    /// Returns the value of a key, if the node is a mapping with that key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let (_, value) = self
            .entries()?
            .iter()
            .find(|(known, _)| known.text() == Some(key))?;
        Some(value)
    }

    pub fn entries(&self) -> Option<&[(Self, Self)]> {
        match &self.value {
            Value::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text at the end of a path of keys; empty if there is none.
    pub fn at(&self, path: &[&str]) -> &str {
        let end = path.iter().try_fold(self, |node, key| node.get(key));
        end.and_then(Self::text).unwrap_or_default()
    }
}
