//! Finds lines that start at column 0, and the line number of an offset.

use memchr::memchr_iter;

const WORD: usize = 8;
/// Number of bytes examined together: enough for vector instructions, few enough to search again.
const BLOCK: usize = 4 * WORD;
/// A word in which all bits of each byte except the highest are set.
const LOW_BITS: u64 = u64::MAX / 255 * 0x7f;

/// Returns the start offsets, in order, of lines after `from` whose first byte is not a space.
///
/// Nearly all lines of a list are indented, so most of the time is spent verifying that a range
/// has no such line. Comparing one word at a time is several times faster than stopping at each
/// line break, even when optimizing for size.
pub(crate) fn at_column_0(list: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let bytes = list.get(from..).unwrap_or_default();
    let next = bytes.get(1..).unwrap_or_default();
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let (next_blocks, next_rest) = next.as_chunks::<BLOCK>();

    let pairs = blocks.iter().zip(next_blocks).enumerate();
    let in_blocks = pairs
        .filter(|(_, (bytes, next))| starts(bytes, next).fold(0, |any, word| any | word) != 0)
        .flat_map(move |(block, (bytes, next))| {
            let words = (from + block * BLOCK + 1..)
                .step_by(WORD)
                .zip(starts(bytes, next));
            words.flat_map(|(start, marks)| marked(marks).map(move |byte| start + byte))
        });
    let in_rest = (from + next_blocks.len() * BLOCK + 1..)
        .zip(next_rest)
        .filter(|(start, next)| list.get(start - 1) == Some(&b'\n') && **next != b' ')
        .map(|(start, _)| start);
    in_blocks.chain(in_rest)
}

/// Marks, word by word, the line breaks whose `next` byte is not a space.
fn starts(bytes: &[u8; BLOCK], next: &[u8; BLOCK]) -> impl Iterator<Item = u64> {
    let words = bytes.as_chunks().0.iter().zip(next.as_chunks().0);
    words.map(|(word, next)| equal(*word, b'\n') & !equal(*next, b' '))
}

/// Marks the bytes of a word that equal `byte` by setting their highest bit.
fn equal(word: [u8; WORD], byte: u8) -> u64 {
    let difference = u64::from_le_bytes(word) ^ u64::from_le_bytes([byte; WORD]);
    // The addition carries into a byte's highest bit unless its low bits are all zero, and never
    // into the next byte.
    !(((difference & LOW_BITS) + LOW_BITS) | difference | LOW_BITS)
}

/// Returns the indexes of the marked bytes.
fn marked(mut marks: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let byte = (marks != 0).then(|| marks.trailing_zeros() as usize / WORD)?;
        marks &= marks - 1;
        Some(byte)
    })
}

/// A counter of line numbers, starting at 1, for increasing offsets.
#[derive(Debug)]
pub(crate) struct LineNumbers<'a> {
    list: &'a [u8],
    counted: usize,
    line: usize,
}

// === impl LineNumbers ===

impl<'a> LineNumbers<'a> {
    pub(crate) fn new(list: &'a [u8]) -> Self {
        Self {
            list,
            counted: 0,
            line: 1,
        }
    }

    /// Returns the line of offset `at`.
    ///
    /// Offsets must not decrease; all calls together read the list once.
    pub(crate) fn line_at(&mut self, at: usize) -> usize {
        let passed = self.list.get(self.counted..at).unwrap_or_default();
        self.line += memchr_iter(b'\n', passed).count();
        self.counted = self.counted.max(at);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_every_line_at_column_0(
            list in "([a \n\u{8a}]{0,3}[a ]{0,90}){0,9}", from in 0_usize..40
        ) {
            let list = list.as_bytes();
            let expected: Vec<usize> = (from + 1..list.len())
                .filter(|&start| list[start - 1] == b'\n' && list[start] != b' ')
                .collect();
            prop_assert_eq!(at_column_0(list, from).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn numbers_lines_from_one() {
        let mut numbers = LineNumbers::new(b"a\nb\n\nc");
        let lines = [0, 1, 2, 2, 4, 5, 9].map(|at| numbers.line_at(at));
        assert_eq!(lines, [1, 1, 2, 2, 3, 4, 4]);
    }
}
