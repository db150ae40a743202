//! Skims YAML in block style: finds the keys at column 0 and parses the few blocks that matter.
//!
//! In a block mapping at column 0, valid YAML puts nothing else there but entries of a sequence
//! that is a value, comments and document markers; scalars of every style go on indented. So lines
//! that start with white space need no look at all. Any other line at column 0 makes it unsure.

use memchr::memchr_iter;

use crate::collector::Collector;
use crate::error::{ScanError, Stop};
use crate::yaml;

/// What a line that starts at column 0 is.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// Nothing, a comment, or more of the block that is open.
    Within,
    /// An entry of a sequence.
    Entry,
    /// A document marker with nothing after it.
    Marker,
    /// The key of a new block.
    Key(&'a [u8]),
    Unsure,
}

/// The lines under one key at column 0, the key's own included.
#[derive(Debug)]
struct Block {
    is_wanted: bool,
    line: usize,
    start: usize,
}

pub(crate) fn read(list: &[u8], collector: &mut Collector) -> Result<(), Stop> {
    // A carriage return on its own would break lines that are not looked for here.
    if memchr_iter(b'\r', list).any(|at| list.get(at + 1) != Some(&b'\n')) {
        return Err(Stop::Unsure);
    }
    let breaks = memchr_iter(b'\n', list).map(|at| at + 1);
    let mut lines = (1..).zip(std::iter::once(0).chain(breaks));
    let mut block = prologue(list, &mut lines)?;
    while let Some((line, start)) = lines.next() {
        match Line::of(list.get(start..).unwrap_or_default()) {
            Line::Within | Line::Entry => {}
            Line::Unsure => return Err(Stop::Unsure),
            Line::Marker => {
                block.read(list, start, collector)?;
                return epilogue(list, lines);
            }
            Line::Key(key) => {
                block.read(list, start, collector)?;
                block = Block::new(key, line, start);
            }
        }
    }
    block.read(list, list.len(), collector)
}

/// Finds the first key, after comments and at most one bare marker.
fn prologue(list: &[u8], lines: &mut impl Iterator<Item = (usize, usize)>) -> Result<Block, Stop> {
    let mut is_marked = false;
    for (line, start) in lines {
        let content = line_at(list, start);
        match Line::of(content) {
            Line::Within if is_bare(content) => {}
            Line::Marker if !is_marked && content.starts_with(b"---") => is_marked = true,
            Line::Key(key) => return Ok(Block::new(key, line, start)),
            _ => return Err(Stop::Unsure),
        }
    }
    Err(Stop::Unsure)
}

/// Makes sure that no second document follows.
fn epilogue(list: &[u8], lines: impl Iterator<Item = (usize, usize)>) -> Result<(), Stop> {
    for (_, start) in lines {
        let content = line_at(list, start);
        if !is_bare(content) && Line::of(content) != Line::Marker {
            return Err(Stop::Unsure);
        }
    }
    Ok(())
}

fn line_at(list: &[u8], start: usize) -> &[u8] {
    let rest = list.get(start..).unwrap_or_default();
    rest.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

/// Whether a line holds at most white space and a comment.
fn is_bare(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

// === impl Block ===

impl Block {
    fn new(key: &[u8], line: usize, start: usize) -> Self {
        let is_wanted = matches!(key, b"apiVersion" | b"kind" | b"results");
        Self {
            is_wanted,
            line,
            start,
        }
    }

    /// Parses the block, which goes up to `end`, if anything in it matters.
    fn read(&self, list: &[u8], end: usize, collector: &mut Collector) -> Result<(), Stop> {
        if !self.is_wanted {
            return Ok(());
        }
        let block = list.get(self.start..end).unwrap_or_default();
        let text = yaml::text(block).map_err(|_| Stop::Unsure)?;
        yaml::read(text, self.line, collector).map_err(|error| match error {
            // Its anchors may be elsewhere, its flow collections may end elsewhere.
            ScanError::Syntax { .. } => Stop::Unsure,
            error => error.into(),
        })
    }
}

// === impl Line ===

impl<'a> Line<'a> {
    fn of(rest: &'a [u8]) -> Self {
        match rest {
            [] | [b' ' | b'\t' | b'\n' | b'\r' | b'#', ..] => Self::Within,
            [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..] => Self::marker(rest),
            [b'-'] | [b'-', b' ' | b'\t' | b'\n' | b'\r', ..] => Self::Entry,
            [first, ..] if first.is_ascii_alphanumeric() => Self::key(rest),
            _ => Self::Unsure,
        }
    }

    fn marker(rest: &'a [u8]) -> Self {
        let after = line_at(rest, 3);
        let is_apart = matches!(after.first(), None | Some(b' ' | b'\t' | b'\r'));
        if is_apart && is_bare(after) {
            Self::Marker
        } else {
            Self::Unsure
        }
    }

    /// A plain key of the most ordinary characters: whatever else may be one is not ours.
    fn key(rest: &'a [u8]) -> Self {
        let is_ordinary =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        let end = rest
            .iter()
            .position(|byte| !is_ordinary(byte))
            .unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        match after {
            [b':'] | [b':', b' ' | b'\t' | b'\n' | b'\r', ..] => Self::Key(key),
            _ => Self::Unsure,
        }
    }
}
