//! Scans YAML in block style: finds the keys at column 0 and parses only the blocks of the
//! envelope.
//!
//! In a block mapping at column 0, valid YAML allows only entries of a sequence that is a value,
//! comments and document markers at that column besides the keys; scalars of every style continue
//! indented. Lines that start with white space can therefore be skipped. Any other line at column 0
//! stops the scan with [`FastScanError::UnsupportedLayout`].

use memchr::memchr_iter;

use crate::collector::Collector;
use crate::error::{FastScanError, ScanError};
use crate::event::NodeEvent;
use crate::lines::{LineNumbers, at_column_0};
use crate::yaml;

/// The kind of a line that starts at column 0.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// An empty line, a comment, or a continuation of the open block.
    Continuation,
    /// An entry of a sequence.
    SequenceEntry,
    /// A document marker without content on the same line.
    DocumentMarker,
    /// A key that starts a new block.
    Key(&'a [u8]),
    /// A line of a layout that this scan does not support.
    Unsupported,
}

/// A key at column 0 with all lines that belong to it.
#[derive(Debug)]
struct Block {
    is_envelope: bool,
    start: usize,
}

struct Reader<'a, 'c> {
    list: &'a [u8],
    lines: LineNumbers<'a>,
    collector: &'c mut Collector,
}

pub(crate) fn read(list: &[u8], collector: &mut Collector) -> Result<(), FastScanError> {
    // A lone carriage return is a line break in YAML, which the line search does not find.
    if memchr_iter(b'\r', list).any(|at| list.get(at + 1) != Some(&b'\n')) {
        return Err(FastScanError::UnsupportedLayout);
    }
    let mut reader = Reader {
        list,
        lines: LineNumbers::new(list),
        collector,
    };
    let mut block = first_block(list)?;
    for start in at_column_0(list, block.start) {
        match Line::classify(list, start) {
            Line::Continuation | Line::SequenceEntry => {}
            Line::Unsupported => return Err(FastScanError::UnsupportedLayout),
            Line::DocumentMarker => {
                reader.block(&block, start)?;
                return check_end(list, start);
            }
            Line::Key(key) => {
                reader.block(&block, start)?;
                block = Block::new(key, start);
            }
        }
    }
    reader.block(&block, list.len())
}

/// Finds the first key, after comments and at most one document marker.
fn first_block(list: &[u8]) -> Result<Block, FastScanError> {
    let mut has_marker = false;
    for (start, content) in lines_from(list, 0) {
        match Line::classify(list, start) {
            Line::Continuation if is_blank_or_comment(content) => {}
            Line::DocumentMarker if !has_marker && content.starts_with(b"---") => has_marker = true,
            Line::Key(key) => return Ok(Block::new(key, start)),
            _ => return Err(FastScanError::UnsupportedLayout),
        }
    }
    Err(FastScanError::UnsupportedLayout)
}

/// Checks that only comments and document markers follow the marker at `start`.
fn check_end(list: &[u8], start: usize) -> Result<(), FastScanError> {
    for (start, content) in lines_from(list, start) {
        if !is_blank_or_comment(content) && Line::classify(list, start) != Line::DocumentMarker {
            return Err(FastScanError::UnsupportedLayout);
        }
    }
    Ok(())
}

/// Returns all lines from offset `first` on, with their start offsets.
fn lines_from(list: &[u8], first: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = first;
    let rest = list.get(first..).unwrap_or_default();
    rest.split(|&byte| byte == b'\n').map(move |line| {
        let this = start;
        start += line.len() + 1;
        (this, line)
    })
}

/// Returns whether a line has only white space and a comment.
fn is_blank_or_comment(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Returns the key and value of a block that is a single line of two plain words.
///
/// Nearly all `apiVersion` and `kind` blocks have this form. The parser would return the same, but
/// would load far more code.
fn plain_entry(block: &[u8]) -> Option<(&str, &str)> {
    let line = block.strip_suffix(b"\n").unwrap_or(block);
    let (key, value) = std::str::from_utf8(line).ok()?.split_once(": ")?;
    let is_word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.bytes().all(is_ordinary)
            && !text.eq_ignore_ascii_case("null")
    };
    (is_word(key) && is_word(value)).then_some((key, value))
}

/// Returns whether a byte has no special meaning to YAML inside a word.
fn is_ordinary(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/')
}

// === impl Block ===

impl Block {
    fn new(key: &[u8], start: usize) -> Self {
        let is_envelope = matches!(key, b"apiVersion" | b"kind" | b"results");
        Self { is_envelope, start }
    }
}

// === impl Reader ===

impl Reader<'_, '_> {
    /// Parses the block that ends at `end`, if it belongs to the envelope.
    fn block(&mut self, block: &Block, end: usize) -> Result<(), FastScanError> {
        if !block.is_envelope {
            return Ok(());
        }
        let bytes = self.list.get(block.start..end).unwrap_or_default();
        let line = self.lines.line_at(block.start);
        if let Some((key, value)) = plain_entry(bytes) {
            let events = [
                NodeEvent::MappingStart,
                NodeEvent::Scalar(key.into()),
                NodeEvent::Scalar(value.into()),
            ];
            for event in events.into_iter().chain([NodeEvent::End]) {
                self.collector.event(event, line)?;
            }
            return Ok(());
        }
        let text = yaml::text(bytes).map_err(|_| FastScanError::UnsupportedLayout)?;
        yaml::read(text, line, self.collector).map_err(|error| match error {
            // Anchors may be defined, and flow collections may end, in another block.
            ScanError::Syntax { .. } => FastScanError::UnsupportedLayout,
            error => error.into(),
        })
    }
}

// === impl Line ===

impl<'a> Line<'a> {
    fn classify(list: &'a [u8], start: usize) -> Self {
        let rest = list.get(start..).unwrap_or_default();
        match rest {
            [] | [b' ' | b'\t' | b'\n' | b'\r' | b'#', ..] => Self::Continuation,
            [b'-', b'-', b'-', after @ ..] | [b'.', b'.', b'.', after @ ..] => Self::marker(after),
            [b'-'] | [b'-', b' ' | b'\t' | b'\n' | b'\r', ..] => Self::SequenceEntry,
            [first, ..] if first.is_ascii_alphanumeric() => Self::key(rest),
            _ => Self::Unsupported,
        }
    }

    fn marker(after: &'a [u8]) -> Self {
        let after = after
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or_default();
        let is_separated = matches!(after.first(), None | Some(b' ' | b'\t' | b'\r'));
        if is_separated && is_blank_or_comment(after) {
            Self::DocumentMarker
        } else {
            Self::Unsupported
        }
    }

    /// Accepts only plain keys of ordinary characters; all keys of the envelope have this form.
    fn key(rest: &'a [u8]) -> Self {
        let end = rest
            .iter()
            .position(|&byte| !is_ordinary(byte))
            .unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        match after {
            [b':'] | [b':', b' ' | b'\t' | b'\n' | b'\r', ..] => Self::Key(key),
            _ => Self::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{scan, scan_whole};

    proptest! {
        #[test]
        fn reads_a_plain_word_as_the_parser_does(
            word in "[a-zA-Z0-9._/-]{0,5}|[nN](ull|ULL)|~|true|config.kubernetes.io/v1|Resource(List)?",
            (head, key) in prop::sample::select(vec![
                ("apiVersion: config.kubernetes.io/v1", "kind"),
                ("kind: ResourceList", "apiVersion"),
                ("kind: ResourceList\napiVersion: config.kubernetes.io/v1", "results"),
            ]),
            end in "|\n|\r\n|\n\n|\n#\n| #\n|\n  more\n",
        ) {
            let list = format!("{head}\nitems: []\n{key}: {word}{end}");
            prop_assert_eq!(scan(list.as_bytes()), scan_whole(list.as_bytes()));
        }
    }
}
