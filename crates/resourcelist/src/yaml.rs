//! Reads YAML of any layout, event by event, within the memory bounds of the parser.

use memchr::{memchr, memchr3_iter};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use crate::anchors::Anchors;
use crate::collector::Collector;
use crate::error::ScanError;
use crate::event::NodeEvent;
use crate::lines::LineNumbers;

/// Maximum nesting depth; other readers of ResourceLists accept less.
const MAX_DEPTH: usize = 10_000;
/// Maximum number of `,`, `[` and `{` in a text.
///
/// The parser holds all tokens of a flow collection until it is certain that the collection is not
/// a key, with up to 800 bytes for each of these characters: about 200 MB at the limit.
const MAX_FLOW_BYTES: usize = 1 << 18;

/// Checks that the bytes are valid UTF-8 without NUL bytes.
pub(crate) fn text(list: &[u8]) -> Result<&str, ScanError> {
    let not_text = |at, detail| ScanError::NotText {
        line: LineNumbers::new(list).line_at(at),
        detail,
    };
    let text =
        std::str::from_utf8(list).map_err(|error| not_text(error.valid_up_to(), "no UTF-8"))?;
    match memchr(0, list) {
        None => Ok(text),
        // The parser treats a NUL as the end of its input.
        Some(at) => Err(not_text(at, "a NUL byte")),
    }
}

/// Reads the only document of `text`; `first_line` is the number of its first line.
pub(crate) fn read(
    text: &str,
    first_line: usize,
    collector: &mut Collector,
) -> Result<(), ScanError> {
    if memchr3_iter(b',', b'[', b'{', text.as_bytes())
        .nth(MAX_FLOW_BYTES)
        .is_some()
    {
        return Err(ScanError::TooComplex {
            detail: "flow collections",
        });
    }
    let mut document = Document {
        collector,
        anchors: Anchors::new(text),
        depth: 0,
        has_content: false,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ScanError::Syntax {
            line: first_line - 1 + error.marker().line(),
            detail: error.info().to_owned(),
        })?;
        document.event(event, first_line - 1 + span.start.line())?;
    }
    if document.has_content {
        Ok(())
    } else {
        Err(ScanError::Empty)
    }
}

struct Document<'a> {
    collector: &'a mut Collector,
    anchors: Anchors,
    depth: usize,
    has_content: bool,
}

// === impl Document ===

impl Document<'_> {
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), ScanError> {
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_null = is_null(&text, style, tag.as_deref());
                (
                    if is_null {
                        NodeEvent::Null
                    } else {
                        NodeEvent::Scalar(text)
                    },
                    anchor,
                )
            }
            Event::MappingStart(anchor, _) => (NodeEvent::MappingStart, anchor),
            Event::SequenceStart(anchor, _) => (NodeEvent::SequenceStart, anchor),
            Event::MappingEnd | Event::SequenceEnd => (NodeEvent::End, 0),
            Event::Alias(anchor) => return self.alias(anchor, line),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => return Ok(()),
        };
        if self.depth == 0 {
            if node == NodeEvent::Null {
                // An empty document, for example after a superfluous marker.
                return Ok(());
            }
            if self.has_content {
                return Err(ScanError::SecondDocument { line });
            }
            self.has_content = true;
        }
        match node {
            NodeEvent::MappingStart | NodeEvent::SequenceStart if self.depth == MAX_DEPTH => {
                return Err(ScanError::TooDeep {
                    line,
                    limit: MAX_DEPTH,
                });
            }
            NodeEvent::MappingStart | NodeEvent::SequenceStart => self.depth += 1,
            _ => {}
        }
        self.anchors.record(&node, anchor, self.depth);
        if node == NodeEvent::End {
            self.depth = self.depth.saturating_sub(1);
        }
        self.collector.event(node, line)
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), ScanError> {
        self.anchors.record_alias(anchor);
        if self.depth == 0 {
            return Err(ScanError::NotAMapping { line });
        }
        if self.collector.ignores_next() {
            return self.collector.event(NodeEvent::Null, line);
        }
        self.anchors.expand(anchor, self.collector, line)
    }
}

fn is_null(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    let is_plain_null =
        style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
    match tag {
        None => is_plain_null,
        Some(tag) => tag.is_yaml_core_schema() && tag.suffix == "null",
    }
}
