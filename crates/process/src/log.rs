//! A function's standard error: all of it while it is short, its two ends when it is not.

use bytes::Bytes;

/// Keeps the first and the last bytes of a stream and counts what was cut out between them.
pub(crate) struct Log {
    head: Vec<u8>,
    /// A ring once `head` is full: `next` is its oldest byte.
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
        // Of what is longer than the ring only the end can stay.
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

/// A log that is no longer than `limit` bytes: the middle of a longer one is cut out, and where not
/// even the mark of the cut fits, nothing is left.
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

/// The text of a log for a message: at most about `limit` bytes of it, the middle cut out, bytes
/// that are not UTF-8 replaced.
#[must_use]
pub fn excerpt(log: &[u8], limit: usize) -> String {
    if log.len() <= limit {
        return String::from_utf8_lossy(log).into_owned();
    }
    // The end of a log says more than its start.
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
    fn a_long_log_keeps_its_ends() {
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
    fn an_excerpt_keeps_more_of_the_end() {
        let text = excerpt(b"0123456789abcdef", 8);
        assert_eq!(text, "01\n[… 8 bytes cut …]\nabcdef");
        assert_eq!(excerpt(b" short\n", 8), " short\n");
    }

    proptest! {
        #[test]
        fn a_shortened_log_fits_and_is_whole_where_it_can_be(
            log in prop::collection::vec(any::<u8>(), 0..300),
            limit in 0usize..300,
        ) {
            let short = shorten(Bytes::from(log.clone()), limit);
            prop_assert!(short.len() <= limit);
            prop_assert_eq!(short == log, log.len() <= limit || log.is_empty());
            prop_assert!(!short.is_empty() || limit < 30 || log.is_empty());
        }

        #[test]
        fn whatever_the_chunks_both_ends_stay(
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
