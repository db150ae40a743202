//! Shortens long texts by cutting out their middle.
//!
//! Three quarters of what remains come from the end, which is more informative than the start.

use bytes::Bytes;

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
    cut_middle(&String::from_utf8_lossy(log), limit)
}

/// Returns about `limit` bytes of a text; the middle of a longer text is cut out.
#[must_use]
pub fn cut_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 4);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 4));
    let mark = cut_mark((tail - head) as u64);
    format!("{}{mark}{}", &text[..head], &text[tail..])
}

/// Returns the line that stands for `cut` bytes.
#[must_use]
pub fn cut_mark(cut: u64) -> String {
    format!("\n[… {cut} bytes cut …]\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        fn cuts_between_characters(text in "\\PC{0,60}", limit in 0usize..200) {
            let cut = cut_middle(&text, limit);
            let is_whole = |text: &str| !text.contains(char::REPLACEMENT_CHARACTER);
            prop_assert!(is_whole(&cut) || !is_whole(&text));
            prop_assert_eq!(cut == text, text.len() <= limit);
        }
    }
}
