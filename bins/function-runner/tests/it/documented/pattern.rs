//! Texts with gaps, and a test whether one is part of another.

/// A text in which `None` matches anything.
pub struct Pattern(Vec<Option<char>>);

/// Words in the documentation that stand for variable parts.
const PLACEHOLDERS: [&str; 5] = ["IMAGE", "PATH", "STDERR", "CODE", "TAG"];

// === impl Pattern ===

impl Pattern {
    /// Returns a pattern without gaps.
    pub fn of_text(text: &str) -> Self {
        Self(text.chars().map(Some).collect())
    }

    /// Returns the pattern of a quoted text, in which `…` and each of [`PLACEHOLDERS`] is a gap.
    pub fn of_quote(text: &str) -> Self {
        let text = PLACEHOLDERS
            .iter()
            .fold(text.to_owned(), |text, word| text.replace(word, "…"));
        Self(text.chars().map(|c| (c != '…').then_some(c)).collect())
    }

    /// Returns the pattern of a format string, in which each placeholder is a gap.
    pub fn of_format_string(text: &str) -> Self {
        let mut pattern = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.peek() == Some(&c) => {
                    chars.next();
                    pattern.push(Some(c));
                }
                '{' => {
                    chars.by_ref().find(|c| *c == '}');
                    pattern.push(None);
                }
                c => pattern.push(Some(c)),
            }
        }
        Self(pattern)
    }

    /// Returns whether some part of another text matches this pattern.
    ///
    /// A match through gaps alone does not count: of the letters in this pattern, three in five
    /// must match letters of the other text.
    pub fn is_part_of(&self, other: &Self) -> bool {
        let letters = self.0.iter().flatten().count();
        if other.0.iter().flatten().count() * 5 < letters * 3 {
            return false;
        }
        let common = (0..=other.0.len()).rev();
        let (mut below, mut best) = (vec![None; self.0.len() + 1], None);
        for i in common {
            let row = self.row(other, i, &below);
            best = best.max(row[0]);
            below = row;
        }
        best.is_some_and(|common| common * 5 >= letters * 3)
    }

    /// Returns the scores of all suffixes of this pattern against `other` from `i` on.
    ///
    /// A score is the largest number of letters in common with a prefix of the rest of `other`, or
    /// `None` without a match. `below` is the row of `i + 1`.
    fn row(&self, other: &Self, i: usize, below: &[Option<usize>]) -> Vec<Option<usize>> {
        let mut row = vec![None; self.0.len() + 1];
        row[self.0.len()] = Some(0);
        for j in (0..self.0.len()).rev() {
            let there = other.0.get(i);
            row[j] = match (there, self.0[j]) {
                (Some(None), _) => row[j + 1].max(below[j]),
                (Some(Some(_)), None) => row[j + 1].max(below[j]),
                (None, None) => row[j + 1],
                (Some(Some(a)), Some(b)) if *a == b => below[j + 1].map(|common| common + 1),
                _ => None,
            };
        }
        row
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.0.iter().map(|c| c.unwrap_or('…')).collect();
        text.fmt(f)
    }
}

#[test]
fn compares_quotes_with_format_strings() {
    for (quote, source, is_part) in [
        (
            "cannot read … (--config): …",
            "cannot read {path} ({flag}): {source}",
            true,
        ),
        ("no tag satisfies \"^9\"", "no tag satisfies {tag:?}", true),
        (
            "the template …: stays",
            "the template {name}: it is bad and stays",
            true,
        ),
        (
            "image … was not found",
            "registry: image {image} was not found there",
            true,
        ),
        (
            "cannot write … (--config)",
            "cannot read {path} ({flag}): {source}",
            false,
        ),
        ("anything at all", "{a}: {b}", false),
        (
            "function \"IMAGE\" not found",
            "function {image:?} not found",
            true,
        ),
        ("a {brace}", "a {{brace}}", true),
    ] {
        let found = Pattern::of_quote(quote).is_part_of(&Pattern::of_format_string(source));
        assert_eq!(found, is_part, "{quote} in {source}");
    }
}
