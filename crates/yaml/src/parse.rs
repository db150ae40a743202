//! Parses text into nodes.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::node::{Node, ScalarForm, Value};

/// Nesting limit: deeper than any resource, but not deep enough to exhaust the stack.
const MAX_DEPTH: usize = 200;

/// One document of a text, as a byte range and a tree.
///
/// The ranges of a text's sections cover the text without gaps or overlaps.
#[derive(Debug)]
pub(crate) struct Section {
    /// Byte range in the text, from the document's `---` (or the beginning of the text) to the next.
    pub(crate) range: Range<usize>,
    /// Byte offset after the document's `---`, if it has one.
    pub(crate) opened: Option<usize>,
    /// The document's content; `None` if it holds only comments.
    pub(crate) root: Option<Node>,
}

/// The reason why a text is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The text violates the YAML grammar.
    #[error("line {line}: {info}")]
    Syntax {
        /// Line number, starting at 1.
        line: usize,
        /// The parser's message.
        info: String,
    },
    /// The text is nested deeper than `MAX_DEPTH`, so that processing could exhaust the stack.
    #[error("line {line}: nested deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// Line number, starting at 1.
        line: usize,
    },
    /// The text does not contain exactly one document.
    #[error("one document expected, {0} found")]
    NotSingle(usize),
}

/// Parses every document of a text and returns the trees of those that are not empty.
///
/// # Errors
/// Returns an error if the text is not YAML.
pub fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    let sections = sections(text)?.into_iter();
    Ok(sections.filter_map(|section| section.root).collect())
}

/// Parses every document of a text.
pub(crate) fn sections(text: &str) -> Result<Vec<Section>, ParseError> {
    let mut builder = Builder::new(text);
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event?;
        builder.take(event, span)?;
    }
    Ok(builder.sections)
}

/// Parses a text with exactly one document that is not empty.
///
/// # Errors
/// Returns an error if the text is not YAML, or holds no document or several.
pub fn parse_one(text: &str) -> Result<Node, ParseError> {
    let mut roots = parse(text)?;
    match (roots.pop(), roots.len()) {
        (Some(root), 0) => Ok(root),
        (last, others) => Err(ParseError::NotSingle(others + usize::from(last.is_some()))),
    }
}

/// A collection whose end has not been parsed yet, with a mapping key that waits for its value.
struct Open {
    node: Node,
    key: Option<Node>,
}

struct Builder<'a> {
    text: &'a str,
    offsets: Offsets,
    open: Vec<Open>,
    sections: Vec<Section>,
}

/// A table from character offsets, which the parser reports, to byte offsets; `None` for ASCII
/// text.
struct Offsets(Option<Vec<usize>>);

// === impl Builder ===

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offsets: Offsets::of(text),
            open: Vec::new(),
            sections: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseError> {
        let start = self.offsets.byte(span.start.index(), self.text);
        let end = self.offsets.byte(span.end.index(), self.text);
        match event {
            Event::DocumentStart(explicit) => {
                // Text before the first `---` belongs to the first document.
                let from = if self.sections.is_empty() { 0 } else { start };
                if let Some(last) = self.sections.last_mut() {
                    last.range.end = from;
                }
                let opened = explicit.then_some(end);
                self.sections.push(Section {
                    range: from..self.text.len(),
                    opened,
                    root: None,
                });
            }
            Event::MappingStart(anchor, _) | Event::SequenceStart(anchor, _) => {
                if self.open.len() == MAX_DEPTH {
                    return Err(ParseError::TooDeep {
                        line: span.start.line(),
                    });
                }
                let value = match event {
                    Event::MappingStart(..) => Value::Mapping(Vec::new()),
                    _ => Value::Sequence(Vec::new()),
                };
                // Block collections have no bracket: the span of their start is empty.
                let flow = matches!(&self.text[start..end], "{" | "[");
                self.open.push(Open {
                    node: Node {
                        value,
                        start,
                        end,
                        flow,
                        anchor,
                    },
                    key: None,
                });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(mut open) = self.open.pop() {
                    if open.node.flow {
                        open.node.end = end;
                    } else {
                        span_children(&mut open.node);
                    }
                    self.add(open.node);
                }
            }
            Event::Alias(anchor) => {
                let name = self.text[start..end].trim_start_matches('*').to_owned();
                self.add(Node {
                    value: Value::Alias(name, anchor),
                    start,
                    end,
                    flow: false,
                    anchor: 0,
                });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let form = match style {
                    ScalarStyle::Plain => ScalarForm::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => ScalarForm::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => ScalarForm::Block,
                };
                let end = match form {
                    ScalarForm::Plain if text.is_empty() => start,
                    ScalarForm::Block => start.max(self.text[..end].trim_end().len()),
                    // The parser's span includes spaces and a comment after the closing quote.
                    ScalarForm::Quoted => start + quoted_len(&self.text[start..end]),
                    ScalarForm::Plain => end,
                };
                let tag = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
                let value = Value::Scalar {
                    text: text.into_owned(),
                    form,
                    tag,
                };
                self.add(Node {
                    value,
                    start,
                    end,
                    flow: false,
                    anchor,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, node: Node) {
        let Some(parent) = self.open.last_mut() else {
            if let Some(section) = self.sections.last_mut() {
                section.root = (!node.is_absent()).then_some(node);
            }
            return;
        };
        match &mut parent.node.value {
            Value::Sequence(items) => items.push(node),
            Value::Mapping(entries) => match parent.key.take() {
                Some(key) => entries.push((key, node)),
                None => parent.key = Some(node),
            },
            Value::Scalar { .. } | Value::Alias(..) => {}
        }
    }
}

/// Returns the length of a quoted scalar, including its anchor and tag.
fn quoted_len(text: &str) -> usize {
    let mut open = 0;
    while let Some(b'&' | b'!') = text.as_bytes().get(open) {
        let rest = &text[open..];
        let property = rest.find(char::is_whitespace).unwrap_or(rest.len());
        open += property + (rest[property..].len() - rest[property..].trim_start().len());
    }
    let quote = text.as_bytes().get(open).copied();
    let mut bytes = text.bytes().enumerate().skip(open + 1).peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quote == Some(b'"') => drop(bytes.next()),
            b'\'' if quote == Some(byte) && bytes.peek().is_some_and(|(_, next)| *next == byte) => {
                bytes.next();
            }
            _ if quote == Some(byte) => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Sets the range of a block collection: from its first child to its last.
fn span_children(node: &mut Node) {
    let range = match &node.value {
        Value::Sequence(items) => items
            .first()
            .zip(items.last())
            .map(|(a, b)| (a.start, b.end)),
        Value::Mapping(entries) => entries
            .first()
            .zip(entries.last())
            .map(|((key, _), (last, value))| (key.start, value.end.max(last.end))),
        _ => None,
    };
    if let Some((start, end)) = range {
        (node.start, node.end) = (start, end);
    }
}

// === impl Offsets ===

impl Offsets {
    fn of(text: &str) -> Self {
        Self((!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte).collect()))
    }

    fn byte(&self, character: usize, text: &str) -> usize {
        match &self.0 {
            None => character.min(text.len()),
            Some(table) => table.get(character).copied().unwrap_or(text.len()),
        }
    }
}

// === impl ParseError ===

impl From<ScanError> for ParseError {
    fn from(error: ScanError) -> Self {
        Self::Syntax {
            line: error.marker().line(),
            info: error.info().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_the_text_into_contiguous_sections() {
        let text = "# licence\n---\na: 1\n---\n# nothing\n---\nb: é\n...\n# tail\n---\nc: 3\n";
        let sections = sections(text).unwrap();
        assert_eq!(sections.len(), 4);
        let joined: String = sections
            .iter()
            .map(|section| &text[section.range.clone()])
            .collect();
        assert_eq!(joined, text);
        assert!(sections[1].root.is_none());
        assert_eq!(
            sections[3]
                .root
                .as_ref()
                .unwrap()
                .get("c")
                .unwrap()
                .as_str(),
            Some("3")
        );
    }

    #[test]
    fn reports_positions_as_byte_offsets() {
        let text = "é: ü\nlist:\n- 'x'\n- {ö: 1}\n";
        let root = parse_one(text).unwrap();
        let written = |node: &Node| text[node.start..node.end].to_owned();
        assert_eq!(written(root.get("é").unwrap()), "ü");
        assert_eq!(written(&root.get("list").unwrap().items()[0]), "'x'");
        assert_eq!(written(&root.get("list").unwrap().items()[1]), "{ö: 1}");
        assert_eq!(written(&root), text.trim_end());
    }

    #[test]
    fn ends_the_range_of_a_block_scalar_with_its_last_line() {
        let text = "a: |\n  one\n  two\n\n# comment\nb: 1\n";
        let root = parse_one(text).unwrap();
        let node = root.get("a").unwrap();
        assert!(text[..node.end].ends_with("two"));
        assert_eq!(node.as_str(), Some("one\ntwo\n"));
    }

    #[test]
    fn ends_the_range_of_a_quoted_scalar_with_its_quote() {
        let text = "a: 'it''s # x' # c\nb: &n \"q \\\" # y\"  # c\nc: !!str ''\n";
        let root = parse_one(text).unwrap();
        let written = |key| {
            text[..root.get(key).unwrap().end]
                .rsplit(": ")
                .next()
                .unwrap()
        };
        assert_eq!(written("a"), "'it''s # x'");
        assert_eq!(written("b"), "&n \"q \\\" # y\"");
        assert_eq!(written("c"), "!!str ''");
    }

    #[test]
    fn reports_the_line_of_an_error() {
        let error = parse("a: 1\nb: {\n").unwrap_err();
        assert!(error.to_string().starts_with("line "), "{error}");
        let deep = "- ".repeat(1000);
        assert!(matches!(parse(&deep), Err(ParseError::TooDeep { .. })));
    }

    #[test]
    fn rejects_several_documents_and_none() {
        assert!(matches!(
            parse_one("a: 1\n---\nb: 1\n"),
            Err(ParseError::NotSingle(2))
        ));
        assert!(matches!(
            parse_one("# nothing\n"),
            Err(ParseError::NotSingle(0))
        ));
    }
}
