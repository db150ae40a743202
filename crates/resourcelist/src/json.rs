//! Reads a list in JSON: parses the envelope and skips everything else by counting brackets.
//!
//! The YAML parser also accepts JSON, but holds all tokens of a flow collection in memory at once
//! and rejects surrogate pairs. Input that is not JSON throughout returns [`FastScanError::UnsupportedLayout`].

mod string;

use crate::collector::Collector;
use crate::error::FastScanError;
use crate::event::NodeEvent;
use crate::lines::LineNumbers;

/// Maximum nesting depth; only merge keys inside merge keys make the collector go deeper.
const MAX_DEPTH: usize = 32;

pub(crate) fn read(list: &[u8], collector: &mut Collector) -> Result<(), FastScanError> {
    let mut reader = Reader {
        list,
        at: 0,
        lines: LineNumbers::new(list),
        depth: 0,
        collector,
    };
    reader.value()?;
    match reader.next_token() {
        None => Ok(()),
        Some(_) => Err(FastScanError::UnsupportedLayout),
    }
}

struct Reader<'a, 'c> {
    list: &'a [u8],
    at: usize,
    lines: LineNumbers<'a>,
    depth: usize,
    collector: &'c mut Collector,
}

// === impl Reader ===

impl<'a> Reader<'a, '_> {
    /// Reads one value; recurses only into values that the collector enters, up to `MAX_DEPTH`.
    fn value(&mut self) -> Result<(), FastScanError> {
        let Some(first) = self.next_token() else {
            return Err(FastScanError::UnsupportedLayout);
        };
        if self.collector.ignores_next() {
            self.skip(first)?;
            return self.event(NodeEvent::Null);
        }
        match first {
            b'{' | b'[' if self.depth == MAX_DEPTH => Err(FastScanError::UnsupportedLayout),
            b'{' => self.members(),
            b'[' => self.elements(),
            b'"' => {
                let text = self.string()?;
                self.event(text)
            }
            _ => {
                let word = self.word()?;
                self.event(word)
            }
        }
    }

    fn members(&mut self) -> Result<(), FastScanError> {
        self.begin(NodeEvent::MappingStart)?;
        if self.next_token() == Some(b'}') {
            return self.end();
        }
        loop {
            self.expect(b'"')?;
            let key = self.string()?;
            self.event(key)?;
            self.expect(b':')?;
            self.at += 1;
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.end(),
                _ => return Err(FastScanError::UnsupportedLayout),
            }
        }
    }

    fn elements(&mut self) -> Result<(), FastScanError> {
        self.begin(NodeEvent::SequenceStart)?;
        if self.next_token() == Some(b']') {
            return self.end();
        }
        loop {
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.end(),
                _ => return Err(FastScanError::UnsupportedLayout),
            }
        }
    }

    fn begin(&mut self, event: NodeEvent<'a>) -> Result<(), FastScanError> {
        self.event(event)?;
        self.at += 1;
        self.depth += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), FastScanError> {
        self.at += 1;
        self.depth -= 1;
        self.event(NodeEvent::End)
    }

    fn event(&mut self, event: NodeEvent<'a>) -> Result<(), FastScanError> {
        let line = self.lines.line_at(self.at);
        Ok(self.collector.event(event, line)?)
    }

    /// Returns the first byte of the next token without consuming it.
    fn next_token(&mut self) -> Option<u8> {
        let rest = self.list.get(self.at..)?;
        let blank = rest.iter().position(|byte| !is_blank(*byte))?;
        self.at += blank;
        rest.get(blank).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), FastScanError> {
        if self.next_token() == Some(byte) {
            Ok(())
        } else {
            Err(FastScanError::UnsupportedLayout)
        }
    }

    fn string(&mut self) -> Result<NodeEvent<'a>, FastScanError> {
        let end = string::end(self.list, self.at).ok_or(FastScanError::UnsupportedLayout)?;
        let inner = self.list.get(self.at + 1..end - 1).unwrap_or_default();
        self.at = end;
        Ok(NodeEvent::Scalar(
            string::decode(inner).ok_or(FastScanError::UnsupportedLayout)?,
        ))
    }

    /// Reads a number, kept as written, or one of `null`, `true` and `false`.
    fn word(&mut self) -> Result<NodeEvent<'a>, FastScanError> {
        let rest = self.list.get(self.at..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| !is_word(*byte))
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        self.at += end;
        let is_number = matches!(word.first(), Some(b'-' | b'0'..=b'9'))
            && word
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        match (word, std::str::from_utf8(word)) {
            (b"null", _) => Ok(NodeEvent::Null),
            (b"true" | b"false", Ok(text)) => Ok(NodeEvent::Scalar(text.into())),
            (_, Ok(text)) if is_number => Ok(NodeEvent::Scalar(text.into())),
            _ => Err(FastScanError::UnsupportedLayout),
        }
    }

    /// Skips one value without recursion.
    fn skip(&mut self, first: u8) -> Result<(), FastScanError> {
        if first == b'"' {
            self.at = string::end(self.list, self.at).ok_or(FastScanError::UnsupportedLayout)?;
            return Ok(());
        }
        if !matches!(first, b'{' | b'[') {
            return self.word().map(drop);
        }
        let mut depth = 0_usize;
        // A quote starts a string only after one of these; elsewhere YAML treats it as text.
        let mut before = b',';
        while let Some(&byte) = self.list.get(self.at) {
            match byte {
                b'"' if matches!(before, b'{' | b'[' | b',' | b':') => {
                    self.at =
                        string::end(self.list, self.at).ok_or(FastScanError::UnsupportedLayout)?;
                    before = byte;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b',' | b':' => {}
                _ if is_blank(byte) => {
                    self.at += 1;
                    continue;
                }
                _ if is_word(byte) => {}
                _ => return Err(FastScanError::UnsupportedLayout),
            }
            before = byte;
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(FastScanError::UnsupportedLayout)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}
