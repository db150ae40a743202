//! Output for people: the function's log, its results and the changes.

pub mod diff;
pub mod results;

use std::borrow::Cow;

/// Replaces control characters in untrusted text, so that functions cannot move the cursor.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    Cow::Owned(
        text.chars()
            .map(|c| if is_harmless(c) { c } else { '\u{fffd}' })
            .collect(),
    )
}

/// Formats a number with its noun in singular or plural.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns the maximum width of a table: `COLUMNS`, else the terminal's width, else 120; at least
/// 40.
#[must_use]
pub fn width() -> u16 {
    let said = std::env::var("COLUMNS").ok();
    said.and_then(|columns| columns.parse().ok())
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0))
        .unwrap_or(120)
        .max(40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_escape_sequences() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\u{1b}[2Jx\r\ny"), "\u{fffd}[2Jx\ny");
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "file")),
            ["0 files", "1 file", "2 files"]
        );
    }
}
