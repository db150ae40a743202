//! Edits a document's text so that it means the same as another tree.
//!
//! Programs that read a document and print it again mostly use their own style: comments dropped,
//! keys sorted, everything quoted. A patch changes only the text whose meaning changed and
//! keeps every other byte. The result is parsed again and compared, so that a patch is either
//! correct or not made.

mod mapping;
mod sequence;

use crate::{
    Node, Value, lines, parse_one,
    render::{After, Renderer},
    same,
};

/// Returns the text of `from`, edited to mean `to`, whose offsets refer to `source`.
///
/// Returns `None` if the text cannot be edited that way; the caller must then use another text.
#[must_use]
pub fn patch(text: &str, from: &Node, to: &Node, source: &str) -> Option<String> {
    patch_and_parse(text, from, to, source).map(|(patched, _)| patched)
}

/// Returns the edited text as [`patch`] does, and its tree.
pub(crate) fn patch_and_parse(
    text: &str,
    from: &Node,
    to: &Node,
    source: &str,
) -> Option<(String, Node)> {
    // A document in braces is JSON, and its readers may accept nothing else.
    let renderer = Renderer {
        source,
        indent_sequences: indents_sequences(text, from),
        json: from.flow,
    };
    let mut patch = Patch {
        text,
        renderer,
        edits: Vec::new(),
    };
    match (&from.value, &to.value) {
        (Value::Mapping(_), Value::Mapping(_)) => patch.mapping(from, to, from.flow).ok()?,
        _ => return None,
    }
    let patched = patch.apply()?;
    let root = parse_one(&patched).ok().filter(|root| same(root, to))?;
    Some((patched, root))
}

/// An error: the value cannot be edited on its own, so the enclosing value is rendered anew.
struct Opaque;

/// The edits of one text, collected while two trees are compared.
struct Patch<'a> {
    text: &'a str,
    renderer: Renderer<'a>,
    edits: Vec<Edit>,
}

/// A byte range and the text that replaces it.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The position of a value, for replacing the whole value.
#[derive(Clone, Copy)]
struct Slot {
    /// Byte offset directly after the `:` or `-`.
    indicator_end: usize,
    after: After,
    flow: bool,
}

// === impl Patch ===

impl Patch<'_> {
    /// Replaces a byte range by a text.
    fn edit(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.edits.push(Edit {
            start,
            end,
            text: text.into(),
        });
    }

    /// Edits a value to mean `to`, member by member if both are collections of one kind.
    fn value(&mut self, slot: Slot, from: &Node, to: &Node) {
        if same(from, to) {
            return;
        }
        let before = self.edits.len();
        let flow = slot.flow || from.flow;
        let edited = match (&from.value, &to.value) {
            (Value::Mapping(_), Value::Mapping(_)) => self.mapping(from, to, flow),
            (Value::Sequence(_), Value::Sequence(_)) => self.sequence(from, to, flow),
            _ => Err(Opaque),
        };
        if edited.is_err() {
            self.edits.truncate(before);
            self.replace(slot, from, to);
        }
    }

    /// Replaces a whole value.
    fn replace(&mut self, slot: Slot, from: &Node, to: &Node) {
        if slot.flow {
            let text = self.renderer.flow(to);
            return if from.is_absent() {
                self.edit(slot.indicator_end, slot.indicator_end, format!(" {text}"));
            } else {
                self.edit(from.start, from.end, text);
            };
        }
        let value = self.renderer.value(to, slot.after);
        if from.is_absent() {
            // A comment after the key stays on the key's line.
            let at = if value.contains('\n') {
                lines::content_end(self.text, slot.indicator_end)
            } else {
                slot.indicator_end
            };
            return self.edit(at, at, value);
        }
        let is_on_this_line = lines::start(self.text, from.start) <= slot.indicator_end;
        match value.strip_prefix(' ') {
            // Spaces that align the value stay.
            Some(value) if is_on_this_line && from.start > slot.indicator_end => {
                self.edit(from.start, from.end, value);
            }
            _ => self.edit(slot.indicator_end, from.end, value),
        }
    }

    /// Applies the edits, or returns `None` if two of them overlap.
    fn apply(mut self) -> Option<String> {
        self.edits.sort_by_key(|edit| (edit.start, edit.end));
        let mut patched = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for edit in &self.edits {
            patched.push_str(self.text.get(at..edit.start)?);
            patched.push_str(&lines::like(&edit.text, self.text));
            at = edit.end;
        }
        patched.push_str(self.text.get(at..)?);
        Some(patched)
    }

    /// Removes whole lines, from the line of `start` to the line of `end`.
    fn remove_lines(&mut self, start: usize, end: usize) {
        self.edit(
            lines::start(self.text, start),
            lines::end(self.text, end),
            "",
        );
    }

    /// Inserts lines after the line of `at`.
    fn insert_lines(&mut self, at: usize, column: usize, text: &str) {
        let at = lines::end(self.text, at);
        let indent = " ".repeat(column);
        if self.text[..at].ends_with('\n') {
            self.edit(at, at, format!("{indent}{text}\n"));
        } else {
            self.edit(at, at, format!("\n{indent}{text}"));
        }
    }

    /// Inserts lines before the value at `at`, which moves down and keeps its column.
    fn insert_before(&mut self, at: usize, column: usize, text: &str) {
        self.edit(at, at, format!("{text}\n{}", " ".repeat(column)));
    }

    /// Returns the start of the comments directly above a line that have the same indentation.
    fn with_comments_above(&self, at: usize) -> usize {
        let column = lines::column(self.text, at);
        let mut start = lines::start(self.text, at);
        while start > 0 {
            let above = lines::start(self.text, start - 1);
            let line = &self.text[above..start];
            let content = line.trim_start_matches(' ');
            if !content.starts_with('#') || line.len() - content.len() != column {
                break;
            }
            start = above;
        }
        start
    }

    /// Inserts a member into a flow collection: after `previous`, else before `first`, else alone.
    fn insert_in_flow(
        &mut self,
        open: &Node,
        previous: Option<usize>,
        first: Option<usize>,
        text: &str,
    ) {
        let own_lines = first.filter(|first| lines::is_first(self.text, *first));
        let newline =
            own_lines.map(|first| format!("\n{}", " ".repeat(lines::column(self.text, first))));
        match (previous, first) {
            (Some(end), _) => {
                let separator = newline.unwrap_or_else(|| " ".to_owned());
                self.edit(end, end, format!(",{separator}{text}"));
            }
            (None, Some(first)) => {
                let separator = newline.unwrap_or_else(|| " ".to_owned());
                self.edit(first, first, format!("{text},{separator}"));
            }
            (None, None) => self.edit(open.start + 1, open.start + 1, text),
        }
    }
}

/// Returns whether the author indents lists deeper than their key; `false` for a text without lists.
fn indents_sequences(text: &str, node: &Node) -> bool {
    fn first_list(text: &str, node: &Node) -> Option<bool> {
        node.entries()
            .iter()
            .find_map(|(key, value)| match &value.value {
                Value::Sequence(items) if !value.flow => {
                    let dash = sequence::dash(text, items.first()?)?;
                    Some(lines::column(text, dash) > lines::column(text, key.start))
                }
                Value::Sequence(items) => items.iter().find_map(|item| first_list(text, item)),
                _ => first_list(text, value),
            })
    }
    first_list(text, node).unwrap_or(false)
}

#[cfg(test)]
mod tests;
