//! A function's standard error: complete while it is short, otherwise its beginning and its end.

use bytes::Bytes;
use runner_core::text::cut_mark;

/// The first and the last bytes of a function's standard error.
pub(crate) struct BoundedLog {
    head: Vec<u8>,
    /// A ring buffer used once `head` is full; `next` is the index of its oldest byte.
    tail: Vec<u8>,
    next: usize,
    /// Number of bytes cut out between `head` and `tail`.
    cut: u64,
    /// Maximum length of `head` and of `tail`.
    half: usize,
}

// === impl BoundedLog ===

impl BoundedLog {
    /// Creates an empty log that keeps at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            next: 0,
            cut: 0,
            half: limit / 2,
        }
    }

    /// Appends bytes; over the limit, they replace the oldest bytes of the tail.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        // Of a chunk longer than the ring, only the end is kept.
        let kept = &rest[rest.len().saturating_sub(self.half)..];
        self.cut += (rest.len() - kept.len()) as u64;
        let room = kept.len().min(self.half - self.tail.len());
        let (appended, replacing) = kept.split_at(room);
        self.tail.extend_from_slice(appended);
        self.cut += replacing.len() as u64;
        let to_end = replacing.len().min(self.tail.len() - self.next);
        let (before_end, from_start) = replacing.split_at(to_end);
        self.tail[self.next..self.next + before_end.len()].copy_from_slice(before_end);
        self.tail[..from_start.len()].copy_from_slice(from_start);
        if !self.tail.is_empty() {
            self.next = (self.next + replacing.len()) % self.tail.len();
        }
    }

    /// Returns the kept bytes, with a mark where bytes were cut out.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        if self.cut > 0 {
            self.head.extend_from_slice(cut_mark(self.cut).as_bytes());
        }
        self.tail.rotate_left(self.next);
        self.head.append(&mut self.tail);
        Bytes::from(self.head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keeps_both_ends_of_a_long_log() {
        let mut log = BoundedLog::new(8);
        for chunk in [&b"abcdef"[..], b"ghi", b"jklmnopqr", b"st"] {
            log.push(chunk);
        }
        assert_eq!(
            log.into_bytes(),
            "abcd\n[… 12 bytes cut …]\nqrst".as_bytes()
        );
    }

    proptest! {
        #[test]
        fn keeps_both_ends_for_any_chunks(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            half in 1usize..30,
        ) {
            let mut log = BoundedLog::new(half * 2);
            for chunk in &chunks {
                log.push(chunk);
            }
            let whole = chunks.concat();
            let kept = log.into_bytes();
            if whole.len() <= half * 2 {
                prop_assert_eq!(&kept[..], &whole[..]);
            } else {
                prop_assert_eq!(&kept[..half], &whole[..half]);
                prop_assert_eq!(&kept[kept.len() - half..], &whole[whole.len() - half..]);
                let mark = cut_mark((whole.len() - half * 2) as u64);
                prop_assert_eq!(kept.len(), half * 2 + mark.len());
            }
        }
    }
}
