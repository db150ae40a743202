//! Reads a list in JSON: parses the envelope and skips everything else by counting brackets.
//!
//! The YAML parser also accepts JSON, but holds all tokens of a flow collection in memory at once
//! and rejects surrogate pairs. Input that is not JSON throughout returns [`Stop::Unsure`].

mod string;

use crate::collector::Collector;
use crate::error::Stop;
use crate::lines::LineNumbers;
use crate::step::Step;

/// Maximum nesting depth; only merge keys inside merge keys make the collector go deeper.
const MAX_DEPTH: usize = 32;

pub(crate) fn read(list: &[u8], collector: &mut Collector) -> Result<(), Stop> {
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
        Some(_) => Err(Stop::Unsure),
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
    fn value(&mut self) -> Result<(), Stop> {
        let Some(first) = self.next_token() else {
            return Err(Stop::Unsure);
        };
        if self.collector.is_indifferent() {
            self.skip(first)?;
            return self.step(Step::Null);
        }
        match first {
            b'{' | b'[' if self.depth == MAX_DEPTH => Err(Stop::Unsure),
            b'{' => self.members(),
            b'[' => self.elements(),
            b'"' => {
                let text = self.string()?;
                self.step(text)
            }
            _ => {
                let word = self.word()?;
                self.step(word)
            }
        }
    }

    fn members(&mut self) -> Result<(), Stop> {
        self.begin(Step::Map)?;
        if self.next_token() == Some(b'}') {
            return self.end();
        }
        loop {
            self.expect(b'"')?;
            let key = self.string()?;
            self.step(key)?;
            self.expect(b':')?;
            self.at += 1;
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.end(),
                _ => return Err(Stop::Unsure),
            }
        }
    }

    fn elements(&mut self) -> Result<(), Stop> {
        self.begin(Step::Seq)?;
        if self.next_token() == Some(b']') {
            return self.end();
        }
        loop {
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.end(),
                _ => return Err(Stop::Unsure),
            }
        }
    }

    fn begin(&mut self, step: Step<'a>) -> Result<(), Stop> {
        self.step(step)?;
        self.at += 1;
        self.depth += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        self.at += 1;
        self.depth -= 1;
        self.step(Step::End)
    }

    fn step(&mut self, step: Step<'a>) -> Result<(), Stop> {
        let line = self.lines.line_at(self.at);
        Ok(self.collector.step(step, line)?)
    }

    /// Returns the first byte of the next token without consuming it.
    fn next_token(&mut self) -> Option<u8> {
        let rest = self.list.get(self.at..)?;
        let blank = rest.iter().position(|byte| !is_blank(*byte))?;
        self.at += blank;
        rest.get(blank).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.next_token() == Some(byte) {
            Ok(())
        } else {
            Err(Stop::Unsure)
        }
    }

    fn string(&mut self) -> Result<Step<'a>, Stop> {
        let end = string::end(self.list, self.at).ok_or(Stop::Unsure)?;
        let inner = self.list.get(self.at + 1..end - 1).unwrap_or_default();
        self.at = end;
        Ok(Step::Text(string::decode(inner).ok_or(Stop::Unsure)?))
    }

    /// Reads a number, kept as written, or one of `null`, `true` and `false`.
    fn word(&mut self) -> Result<Step<'a>, Stop> {
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
            (b"null", _) => Ok(Step::Null),
            (b"true" | b"false", Ok(text)) => Ok(Step::Text(text.into())),
            (_, Ok(text)) if is_number => Ok(Step::Text(text.into())),
            _ => Err(Stop::Unsure),
        }
    }

    /// Skips one value without recursion.
    fn skip(&mut self, first: u8) -> Result<(), Stop> {
        if first == b'"' {
            self.at = string::end(self.list, self.at).ok_or(Stop::Unsure)?;
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
                    self.at = string::end(self.list, self.at).ok_or(Stop::Unsure)?;
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
                _ => return Err(Stop::Unsure),
            }
            before = byte;
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Stop::Unsure)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}
