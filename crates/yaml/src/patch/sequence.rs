//! Adds, removes and changes the items of lists.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{Opaque, Patch, Slot};
use crate::{
    Node, lines,
    render::{After, Renderer},
};

/// Keys whose value identifies an item of a list, in order of preference.
///
/// They only decide which items are compared with each other, and so which text is kept; the result
/// means the same with any keys. These are the merge keys of most lists in configuration files.
const IDENTITY_KEYS: [&str; 5] = ["name", "key", "mountPath", "containerPort", "port"];

// === impl Patch ===

impl Patch<'_> {
    /// Edits the items of a sequence to those of `to`.
    pub(super) fn sequence(&mut self, from: &Node, to: &Node, flow: bool) -> Result<(), Opaque> {
        let (old, new) = (from.items(), to.items());
        let old_names: Vec<String> = old.iter().map(|item| identity(item, self.text)).collect();
        let new_names: Vec<String> = new
            .iter()
            .map(|item| identity(item, self.renderer.source))
            .collect();
        let pairs = pairs(&old_names, &new_names);
        if !old.is_empty() && pairs.is_empty() {
            return Err(Opaque);
        }
        let dashes: Vec<usize> = if flow {
            Vec::new()
        } else {
            old.iter()
                .map(|item| dash(self.text, item).ok_or(Opaque))
                .collect::<Result<_, _>>()?
        };
        for (position, item) in old.iter().enumerate() {
            match pairs.iter().find(|(known, _)| *known == position) {
                Some((_, target)) => {
                    let slot = if flow {
                        Slot {
                            indicator_end: item.start,
                            after: After::Dash(0),
                            flow,
                        }
                    } else {
                        let column = lines::column(self.text, dashes[position]);
                        Slot {
                            indicator_end: dashes[position] + 1,
                            after: After::Dash(column),
                            flow,
                        }
                    };
                    self.value(slot, item, &new[*target]);
                }
                None if flow => self.remove_flow_item(old, &pairs, position),
                None if lines::is_first(self.text, dashes[position]) => {
                    let start = self.with_comments_above(dashes[position]);
                    self.remove_lines(start, item.end.max(dashes[position]));
                }
                None => return Err(Opaque),
            }
        }
        self.insert_items(from, to, &pairs, &dashes, flow)
    }

    fn remove_flow_item(&mut self, old: &[Node], pairs: &[(usize, usize)], position: usize) {
        let kept_before = pairs.iter().any(|(known, _)| *known < position);
        match old.get(position + 1) {
            _ if kept_before => self.edit(old[position - 1].end, old[position].end, ""),
            Some(next) => self.edit(old[position].start, next.start, ""),
            None => {}
        }
    }

    fn insert_items(
        &mut self,
        from: &Node,
        to: &Node,
        pairs: &[(usize, usize)],
        dashes: &[usize],
        flow: bool,
    ) -> Result<(), Opaque> {
        let old = from.items();
        let mut previous: Option<usize> = None;
        for (position, item) in to.items().iter().enumerate() {
            if let Some((known, _)) = pairs.iter().find(|(_, target)| *target == position) {
                previous = Some(*known);
                continue;
            }
            let first = pairs.first().map(|(known, _)| *known);
            if flow {
                let text = self.renderer.flow(item);
                let end = previous.map(|known| old[known].end);
                self.insert_in_flow(from, end, first.map(|first| old[first].start), &text);
                continue;
            }
            let first = dashes[first.ok_or(Opaque)?];
            let column = lines::column(self.text, first);
            let text = format!("-{}", self.renderer.value(item, After::Dash(column)));
            match previous {
                Some(known) => {
                    self.insert_lines(old[known].end.max(dashes[known]), column, &text);
                }
                None => self.insert_before(first, column, &text),
            }
        }
        Ok(())
    }
}

/// Returns the offset of an item's dash, if only spaces separate the two.
pub(super) fn dash(text: &str, item: &Node) -> Option<usize> {
    let line = text
        .get(lines::start(text, item.start)..item.start)?
        .trim_end_matches(' ');
    let dash = lines::start(text, item.start) + line.len().checked_sub(1)?;
    let is_dash = line.ends_with('-') && line.trim_start_matches([' ', '-']).is_empty();
    is_dash.then_some(dash)
}

/// Returns the identity of an item across changes: its value of the first of [`IDENTITY_KEYS`], or
/// its whole content.
fn identity(item: &Node, source: &str) -> String {
    for key in IDENTITY_KEYS {
        if let Some(name) = item.get(key).and_then(Node::as_str) {
            return format!("{key}={name}");
        }
    }
    Renderer::new(source).flow(item)
}

/// Returns pairs of an old and a new index for the items that correspond, in order.
///
/// Items with different identities are matched by position where as many were removed as added.
fn pairs(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => {
                pairs.extend((0..len).map(|step| (old_index + step, new_index + step)));
            }
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } if old_len == new_len => {
                pairs.extend((0..old_len).map(|step| (old_index + step, new_index + step)));
            }
            _ => {}
        }
    }
    pairs
}
