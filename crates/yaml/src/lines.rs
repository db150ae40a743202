//! Lines and their indentation.

/// Returns the offset at which the line of `at` begins.
#[must_use]
pub fn start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the offset at which the line of `at` ends: after its newline, or at the end of the text.
#[must_use]
pub fn end(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the offset at which the content of the line of `at` ends: before its newline.
#[must_use]
pub fn content_end(text: &str, at: usize) -> usize {
    let line = &text[..end(text, at)];
    line.strip_suffix('\n')
        .map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
        .len()
}

/// Returns the number of characters before `at` on its line.
#[must_use]
pub fn column(text: &str, at: usize) -> usize {
    text[start(text, at)..at].chars().count()
}

/// Returns whether only spaces precede `at` on its line.
#[must_use]
pub fn is_first(text: &str, at: usize) -> bool {
    text[start(text, at)..at].bytes().all(|byte| byte == b' ')
}

/// Indents every line that is not empty.
#[must_use]
pub fn indent(text: &str, by: usize) -> String {
    let prefix = " ".repeat(by);
    let mut shifted = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        // A line of spaces can be content of a block scalar, so only an empty line is not indented.
        if !line.trim_end_matches(['\n', '\r']).is_empty() {
            shifted.push_str(&prefix);
        }
        shifted.push_str(line);
    }
    shifted
}

/// Removes up to `by` spaces from the start of every line.
#[must_use]
pub fn dedent(text: &str, by: usize) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let blanks = line
                .bytes()
                .take(by)
                .take_while(|byte| *byte == b' ')
                .count();
            &line[blanks..]
        })
        .collect()
}

/// Converts the line endings of a text to those of `model`.
#[must_use]
pub fn like(text: &str, model: &str) -> String {
    let plain = text.replace("\r\n", "\n");
    if model.contains("\r\n") {
        plain.replace('\n', "\r\n")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restores_indented_text_by_dedenting() {
        for text in ["a\n  b\n\n   \nc", "", "\n", "a\r\n\r\nb\r\n"] {
            assert_eq!(dedent(&indent(text, 3), 3), text);
        }
    }

    #[test]
    fn finds_the_line_of_an_offset() {
        let text = "one\r\n  two\nthree";
        assert_eq!(start(text, 8), 5);
        assert_eq!(end(text, 8), 11);
        assert_eq!(content_end(text, 1), 3);
        assert_eq!(content_end(text, 13), text.len());
        assert_eq!(column(text, 7), 2);
        assert!(is_first(text, 7));
        assert!(!is_first(text, 9));
    }

    #[test]
    fn converts_line_endings_to_those_of_the_model() {
        assert_eq!(like("a\nb\n", "x\r\n"), "a\r\nb\r\n");
        assert_eq!(like("a\r\nb\r\n", "x\n"), "a\nb\n");
    }
}
