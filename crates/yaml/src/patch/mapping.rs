//! Adds, removes and changes the keys of mappings.

use super::{Opaque, Patch, Slot};
use crate::{Node, lines, render::After, same_key};

/// A key and its value in the text.
struct Entry<'a> {
    key: &'a Node,
    value: &'a Node,
    /// Byte offset directly after the colon.
    indicator_end: usize,
    /// Byte offset after the value, or after the colon if there is no value.
    end: usize,
}

// === impl Patch ===

impl Patch<'_> {
    /// Edits the entries of a mapping to those of `to`.
    pub(super) fn mapping(&mut self, from: &Node, to: &Node, flow: bool) -> Result<(), Opaque> {
        let entries = self.entries(from)?;
        let kept: Vec<bool> = entries
            .iter()
            .map(|entry| find(to, entry.key).is_some())
            .collect();
        if !entries.is_empty() && !kept.contains(&true) {
            return Err(Opaque);
        }
        for (position, entry) in entries.iter().enumerate() {
            match find(to, entry.key) {
                Some((_, value)) => {
                    let after = After::Key(lines::column(self.text, entry.key.start));
                    let slot = Slot {
                        indicator_end: entry.indicator_end,
                        after,
                        flow,
                    };
                    self.value(slot, entry.value, value);
                }
                None if flow => self.remove_flow_entry(&entries, &kept, position),
                None => self.remove_entry(&entries, position),
            }
        }
        self.insert_entries(from, to, &entries, &kept, flow)
    }

    fn entries<'n>(&self, node: &'n Node) -> Result<Vec<Entry<'n>>, Opaque> {
        node.entries()
            .iter()
            .map(|(key, value)| {
                let rest = &self.text[key.end..];
                let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
                // `? key` and keys without a value in flow style are not followed by a colon.
                if !rest[blanks..].starts_with(':') {
                    return Err(Opaque);
                }
                let indicator_end = key.end + blanks + 1;
                let end = if value.is_absent() {
                    indicator_end
                } else {
                    value.end.max(indicator_end)
                };
                Ok(Entry {
                    key,
                    value,
                    indicator_end,
                    end,
                })
            })
            .collect()
    }

    fn remove_entry(&mut self, entries: &[Entry<'_>], position: usize) {
        let entry = &entries[position];
        if lines::is_first(self.text, entry.key.start) {
            // A comment above the first key may describe all keys.
            let start = if position == 0 {
                entry.key.start
            } else {
                self.with_comments_above(entry.key.start)
            };
            self.remove_lines(start, entry.end);
        } else if let Some(next) = entries.get(position + 1) {
            // The key follows a dash on the same line: the next key takes its place.
            self.edit(entry.key.start, next.key.start, "");
        }
    }

    fn remove_flow_entry(&mut self, entries: &[Entry<'_>], kept: &[bool], position: usize) {
        let entry = &entries[position];
        let last_kept_before = kept[..position].iter().rposition(|kept| *kept);
        match (last_kept_before, entries.get(position + 1)) {
            (Some(_), _) => self.edit(entries[position - 1].end, entry.end, ""),
            (None, Some(next)) => self.edit(entry.key.start, next.key.start, ""),
            (None, None) => {}
        }
    }

    fn insert_entries(
        &mut self,
        from: &Node,
        to: &Node,
        entries: &[Entry<'_>],
        kept: &[bool],
        flow: bool,
    ) -> Result<(), Opaque> {
        let first_kept = kept.iter().position(|kept| *kept);
        let mut previous: Option<usize> = None;
        for (key, value) in to.entries() {
            if let Some(known) = entries.iter().position(|entry| same_key(entry.key, key)) {
                previous = Some(previous.map_or(known, |previous| previous.max(known)));
                continue;
            }
            if flow {
                let text = format!(
                    "{}: {}",
                    self.renderer.flow_key(key),
                    self.renderer.flow(value)
                );
                let end = previous.map(|known| entries[known].end);
                let first = first_kept.map(|first| entries[first].key.start);
                self.insert_in_flow(from, end, first, &text);
                continue;
            }
            let first = &entries[first_kept.ok_or(Opaque)?];
            let column = lines::column(self.text, first.key.start);
            let text = self.renderer.value(value, After::Key(column));
            let text = format!("{}:{text}", self.renderer.key(key));
            match previous {
                Some(known) => self.insert_lines(entries[known].end, column, &text),
                None => self.insert_before(first.key.start, column, &text),
            }
        }
        Ok(())
    }
}

/// Returns the entry with the same key, if the mapping has one.
fn find<'n>(mapping: &'n Node, key: &Node) -> Option<&'n (Node, Node)> {
    mapping
        .entries()
        .iter()
        .find(|(known, _)| same_key(known, key))
}
