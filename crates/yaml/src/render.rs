//! Renders nodes as new text, for values whose original text cannot be kept.

use std::fmt::Write;

use crate::{
    compare::is_text,
    lines,
    node::{Node, ScalarForm, Value},
};

/// The indicator that precedes a value and determines its indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// After `key:`, with the key at this column.
    Key(usize),
    /// After `-`, with the dash at this column.
    Dash(usize),
}

/// A renderer for the nodes of one source text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renderer<'a> {
    /// The text that the offsets in the nodes refer to.
    pub(crate) source: &'a str,
    /// Whether lists inside mappings are indented deeper than their key.
    pub(crate) indent_sequences: bool,
    /// Whether flow collections must be JSON.
    pub(crate) json: bool,
}

// === impl Renderer ===

impl<'a> Renderer<'a> {
    /// Returns a renderer for texts whose author's style is unknown: sequences are not indented
    /// deeper than their key.
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            indent_sequences: false,
            json: false,
        }
    }

    /// Renders a whole document in block style, with a trailing newline.
    pub(crate) fn document(&self, node: &Node) -> String {
        let mut text = match self.one_line(node) {
            Some(line) => line,
            None => self.block(node, 0),
        };
        text.push('\n');
        text
    }

    /// Renders the text that follows `key:` or `-`, including the separating space or newline.
    pub(crate) fn value(&self, node: &Node, after: After) -> String {
        if let Some(line) = self.one_line(node) {
            return if line.is_empty() {
                line
            } else {
                format!(" {line}")
            };
        }
        let (After::Key(column) | After::Dash(column)) = after;
        match (&node.value, after) {
            (Value::Scalar { text, .. }, _) => format!(" {}", literal(text, column + 2)),
            (_, After::Dash(_)) => format!(" {}", self.block(node, column + 2)),
            (Value::Sequence(_), After::Key(_)) if !self.indent_sequences => {
                format!("\n{}{}", " ".repeat(column), self.block(node, column))
            }
            _ => format!(
                "\n{}{}",
                " ".repeat(column + 2),
                self.block(node, column + 2)
            ),
        }
    }

    /// Renders a key of a block mapping.
    pub(crate) fn key(&self, node: &Node) -> String {
        self.one_line(node)
            .unwrap_or_else(|| quoted(node.as_str().unwrap_or_default()))
    }

    /// Renders a node on one line of block style, or returns `None` if it needs several lines.
    pub(crate) fn one_line(&self, node: &Node) -> Option<String> {
        match &node.value {
            Value::Alias(name, _) => Some(format!("*{name}")),
            Value::Sequence(items) if items.is_empty() => Some("[]".to_owned()),
            Value::Mapping(entries) if entries.is_empty() => Some("{}".to_owned()),
            Value::Sequence(_) | Value::Mapping(_) => None,
            Value::Scalar { text, form, tag } => {
                if let Some(tag) = tag {
                    return Some(format!("!<{tag}> {}", quoted(text)));
                }
                let written = self.source.get(node.start..node.end).unwrap_or_default();
                match form {
                    ScalarForm::Plain if written.is_empty() || written.contains('\n') => {
                        Some(text.clone())
                    }
                    ScalarForm::Plain => Some(written.to_owned()),
                    _ if is_bare(text) => Some(text.clone()),
                    _ if is_literal(text) => None,
                    ScalarForm::Quoted if !written.is_empty() && !written.contains('\n') => {
                        Some(written.to_owned())
                    }
                    _ => Some(quoted(text)),
                }
            }
        }
    }

    /// Renders a node in flow style, on one line.
    pub(crate) fn flow(&self, node: &Node) -> String {
        match &node.value {
            Value::Alias(name, _) => format!("*{name}"),
            Value::Scalar {
                text,
                form: ScalarForm::Plain,
                tag: None,
            } if !is_text(text) => {
                if text.is_empty() {
                    "null".to_owned()
                } else {
                    text.clone()
                }
            }
            Value::Scalar { text, .. } if is_bare(text) && !self.json => text.clone(),
            Value::Scalar { text, .. } => quoted(text),
            Value::Sequence(items) => {
                let items: Vec<_> = items.iter().map(|item| self.flow(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Mapping(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", self.flow_key(key), self.flow(value)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// Renders a key in flow style.
    pub(crate) fn flow_key(&self, node: &Node) -> String {
        match node.as_str() {
            Some(text) if is_bare(text) && !self.json => text.to_owned(),
            Some(text) => quoted(text),
            None => self.flow(node),
        }
    }

    /// Renders a collection whose first line begins at `column`, and indents the other lines to it.
    fn block(&self, node: &Node, column: usize) -> String {
        let mut text = String::new();
        let indent = " ".repeat(column);
        let mut line = |part: String| {
            if !text.is_empty() {
                let _ = write!(text, "\n{indent}");
            }
            text.push_str(&part);
        };
        match &node.value {
            Value::Mapping(entries) => {
                for (key, value) in entries {
                    line(format!(
                        "{}:{}",
                        self.key(key),
                        self.value(value, After::Key(column))
                    ));
                }
            }
            Value::Sequence(items) => {
                for item in items {
                    line(format!("-{}", self.value(item, After::Dash(column))));
                }
            }
            Value::Scalar { .. } | Value::Alias(..) => line(self.flow(node)),
        }
        text
    }
}

/// Renders a node as a block YAML document, with a trailing newline.
///
/// `source` is the text that the node was parsed from; it is not used for nodes that were built.
/// Comments are lost.
#[must_use]
pub fn to_yaml(node: &Node, source: &str) -> String {
    Renderer::new(source).document(node)
}

/// Renders a node as indented JSON, with a trailing newline.
///
/// Plain scalars that are not text, such as numbers, are copied as they are.
#[must_use]
pub fn to_json(node: &Node, source: &str) -> String {
    let mut text = String::new();
    write_json(
        node,
        Renderer {
            json: true,
            ..Renderer::new(source)
        },
        0,
        &mut text,
    );
    text.push('\n');
    text
}

fn write_json(node: &Node, renderer: Renderer<'_>, depth: usize, text: &mut String) {
    let (open, close, members): (_, _, Vec<(Option<&Node>, &Node)>) = match &node.value {
        Value::Mapping(entries) if !entries.is_empty() => (
            '{',
            '}',
            entries
                .iter()
                .map(|(key, value)| (Some(key), value))
                .collect(),
        ),
        Value::Sequence(items) if !items.is_empty() => {
            ('[', ']', items.iter().map(|item| (None, item)).collect())
        }
        _ => return text.push_str(&renderer.flow(node)),
    };
    text.push(open);
    for (position, (key, value)) in members.into_iter().enumerate() {
        text.push_str(if position == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        if let Some(key) = key {
            let _ = write!(text, "{}: ", quoted(key.as_str().unwrap_or_default()));
        }
        write_json(value, renderer, depth + 1, text);
    }
    let _ = write!(text, "\n{}{close}", "  ".repeat(depth));
}

/// Returns a text in double quotes, valid in both JSON and YAML.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns whether a text never needs quotes: a letter first and no character special to YAML.
fn is_bare(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && is_text(text)
}

/// Returns whether a text has several lines and can be written as a literal block without loss.
fn is_literal(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && text
            .chars()
            .all(|c| c == '\n' || (!c.is_control() && c != '\u{feff}'))
}

/// Returns a text as a literal block whose lines are indented by `indent`.
fn literal(text: &str, indent: usize) -> String {
    let chomping = match text.len() - text.trim_end_matches('\n').len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let lines = lines::indent(text.strip_suffix('\n').unwrap_or(text), indent);
    format!("|{chomping}\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_one, same};

    fn rendered(source: &str, indent_sequences: bool) -> String {
        Renderer {
            indent_sequences,
            ..Renderer::new(source)
        }
        .document(&parse_one(source).unwrap())
    }

    #[test]
    fn renders_json_as_block_yaml() {
        let source = r#"{"a": {"b": [1, "x", {"c": true, "d": []}]}, "e": "one\ntwo\n", "f": "yes", "g": "1"}"#;
        let text = rendered(source, false);
        insta::assert_snapshot!(text, @r#"
        a:
          b:
          - 1
          - x
          - c: true
            d: []
        e: |
          one
          two
        f: "yes"
        g: "1"
        "#);
        assert!(same(
            &parse_one(&text).unwrap(),
            &parse_one(source).unwrap()
        ));
        assert!(rendered(source, true).contains("  b:\n    - 1\n"));
    }

    #[test]
    fn renders_yaml_as_json() {
        let source = "a:\n- b: yes\n  c: text\n  d: |\n    x\n- []\ne:\n";
        insta::assert_snapshot!(to_json(&parse_one(source).unwrap(), source), @r#"
        {
          "a": [
            {
              "b": yes,
              "c": "text",
              "d": "x\n"
            },
            []
          ],
          "e": null
        }
        "#);
    }

    #[test]
    fn preserves_texts_with_special_characters() {
        for text in [
            "a\nb",
            "a\n\n\nb\n\n",
            " a\nb",
            "a: b",
            "# x",
            "tab\there\nx",
            "é\nü\n",
        ] {
            let node = Node::mapping(vec![(Node::text("k"), Node::text(text))]);
            let written = Renderer::new("").document(&node);
            assert!(
                same(&parse_one(&written).unwrap(), &node),
                "{text:?} became {written:?}"
            );
        }
    }
}
