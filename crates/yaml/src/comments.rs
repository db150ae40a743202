//! Extracts comments, which the parser discards.

use crate::node::{Node, Value};

/// Returns the comments of the text that holds `root`, without `#` and whitespace, in order.
#[must_use]
pub fn comments<'a>(text: &'a str, root: &Node) -> Vec<&'a str> {
    let mut scalars = Vec::new();
    collect(root, &mut scalars);
    let mut found = Vec::new();
    let mut at = 0;
    for (start, end) in scalars {
        if start >= at {
            scan(text, at, start, &mut found);
        }
        at = at.max(end);
    }
    scan(text, at, text.len(), &mut found);
    found
}

fn collect(node: &Node, ranges: &mut Vec<(usize, usize)>) {
    match &node.value {
        Value::Scalar { .. } | Value::Alias(..) => ranges.push((node.start, node.end)),
        Value::Sequence(items) => items.iter().for_each(|item| collect(item, ranges)),
        Value::Mapping(entries) => entries.iter().for_each(|(key, value)| {
            collect(key, ranges);
            collect(value, ranges);
        }),
    }
}

/// Collects the comments between two scalars, where a `#` after whitespace begins a comment.
fn scan<'a>(text: &'a str, from: usize, to: usize, found: &mut Vec<&'a str>) {
    let mut at = from;
    while let Some(hash) = text[at..to].find('#').map(|hash| at + hash) {
        let free = text[..hash]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let end = text[hash..to]
            .find('\n')
            .map_or(to, |newline| hash + newline);
        if free {
            found.push(text[hash..end].trim_matches(|c: char| c == '#' || c.is_whitespace()));
            at = end;
        } else {
            at = hash + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_one;

    #[test]
    fn distinguishes_comments_from_text() {
        let text = "# head\na: 'x # no' # line\nb: |  # header\n  # no\nc: a#b\n# foot\n";
        let root = parse_one(text).unwrap();
        assert_eq!(comments(text, &root), ["head", "line", "header", "foot"]);
    }
}
