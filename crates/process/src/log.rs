//! A function's standard error: complete while it is short, otherwise its beginning and its end.

use bytes::Bytes;

/// The first and the last bytes of a stream, and the number of bytes cut out between them.
pub(crate) struct Log {
    head: Vec<u8>,
    /// A ring buffer used once `head` is full; `next` is the index of its oldest byte.
    tail: Vec<u8>,
    next: usize,
    cut: u64,
    half: usize,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            next: 0,
            cut: 0,
            half: limit / 2,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        // Of a chunk longer than the ring, only the end is kept.
        let kept = &rest[rest.len().saturating_sub(self.half)..];
        self.cut += (rest.len() - kept.len()) as u64;
        let room = kept.len().min(self.half - self.tail.len());
        let (fills, replaces) = kept.split_at(room);
        self.tail.extend_from_slice(fills);
        self.cut += replaces.len() as u64;
        let to_end = replaces.len().min(self.tail.len() - self.next);
        let (before_end, from_start) = replaces.split_at(to_end);
        self.tail[self.next..self.next + before_end.len()].copy_from_slice(before_end);
        self.tail[..from_start.len()].copy_from_slice(from_start);
        if !self.tail.is_empty() {
            self.next = (self.next + replaces.len()) % self.tail.len();
        }
    }

    pub(crate) fn into_bytes(mut self) -> Bytes {
        if self.cut > 0 {
            self.head.extend_from_slice(cut_mark(self.cut).as_bytes());
        }
        self.tail.rotate_left(self.next);
        self.head.append(&mut self.tail);
        Bytes::from(self.head)
    }
}

/// Shortens a log to at most `limit` bytes by cutting out its middle.
///
/// Returns an empty log if not even the mark of the cut fits.
#[must_use]
pub fn shorten(log: Bytes, limit: usize) -> Bytes {
    if log.len() <= limit {
        return log;
    }
    let longest_mark = cut_mark(log.len() as u64).len();
    let Some(kept) = limit.checked_sub(longest_mark) else {
        return Bytes::new();
    };
    let (head, tail) = (&log[..kept / 4], &log[log.len() - (kept - kept / 4)..]);
    let mark = cut_mark((log.len() - kept) as u64);
    Bytes::from([head, mark.as_bytes(), tail].concat())
}

/// Returns about `limit` bytes of a log as text for a message.
///
/// The middle of a longer log is cut out, and bytes that are not UTF-8 are replaced.
#[must_use]
pub fn excerpt(log: &[u8], limit: usize) -> String {
    if log.len() <= limit {
        return String::from_utf8_lossy(log).into_owned();
    }
    // The end of a log is more useful than its start.
    let head = String::from_utf8_lossy(&log[..limit / 4]);
    let tail = String::from_utf8_lossy(&log[log.len() - (limit - limit / 4)..]);
    let cut = cut_mark((log.len() - limit) as u64);
    format!("{head}{cut}{tail}")
}

fn cut_mark(cut: u64) -> String {
    format!("\n[… {cut} bytes cut …]\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keeps_both_ends_of_a_long_log() {
        let mut log = Log::new(8);
        for chunk in [&b"abcdef"[..], b"ghi", b"jklmnopqr", b"st"] {
            log.push(chunk);
        }
        assert_eq!(
            log.into_bytes(),
            "abcd\n[… 12 bytes cut …]\nqrst".as_bytes()
        );
    }

    #[test]
    fn keeps_more_of_the_end_in_an_excerpt() {
        let text = excerpt(b"0123456789abcdef", 8);
        assert_eq!(text, "01\n[… 8 bytes cut …]\nabcdef");
        assert_eq!(excerpt(b" short\n", 8), " short\n");
    }

    proptest! {
        #[test]
        fn shortens_only_a_log_over_the_limit(
            log in prop::collection::vec(any::<u8>(), 0..300),
            limit in 0usize..300,
        ) {
            let short = shorten(Bytes::from(log.clone()), limit);
            prop_assert!(short.len() <= limit);
            prop_assert_eq!(short == log, log.len() <= limit || log.is_empty());
            prop_assert!(!short.is_empty() || limit < 30 || log.is_empty());
        }

        #[test]
        fn keeps_both_ends_for_any_chunks(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            half in 1usize..30,
        ) {
            let mut log = Log::new(half * 2);
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
