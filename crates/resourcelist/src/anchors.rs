//! Records the content of anchors so that aliases in the results can be resolved.
//!
//! Only anchored nodes are recorded, on a tape of events with a range per anchor. Expanding an alias
//! is iterative and limited by an allowance, so neither a chain of aliases nor an alias bomb costs
//! more than a multiple of the length of the text.

use std::collections::HashMap;
use std::ops::Range;

use crate::collector::Collector;
use crate::error::ScanError;
use crate::event::NodeEvent;

/// Maximum number of recorded events; the envelope of a real list needs far fewer.
const MAX_TAPE_ENTRIES: usize = 1 << 18;
/// Weight to which aliases may expand in addition to the length of the text.
const EXTRA_ALLOWANCE: usize = 1 << 20;

/// The recorded content of all anchors of a document.
#[derive(Debug)]
pub(crate) struct Anchors {
    tape: Vec<TapeEntry>,
    /// Range of each closed anchor on the tape.
    ranges: HashMap<usize, Range<usize>>,
    /// Anchored collections that are still open, outermost first.
    open: Vec<OpenAnchor>,
    /// Whether the tape has reached its limit, so that later anchors are not recorded.
    is_full: bool,
    /// Weight to which aliases may still expand.
    allowance: usize,
}

/// An event of an anchored node, or an alias inside it.
#[derive(Debug)]
enum TapeEntry {
    Event(NodeEvent<'static>),
    Alias(usize),
}

/// An anchored collection without its end yet.
#[derive(Debug)]
struct OpenAnchor {
    anchor: usize,
    start: usize,
    depth: usize,
}

// === impl Anchors ===

impl Anchors {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            tape: Vec::new(),
            ranges: HashMap::new(),
            open: Vec::new(),
            is_full: false,
            allowance: text.len().saturating_add(EXTRA_ALLOWANCE),
        }
    }

    /// Records an event if it belongs to an anchored node.
    ///
    /// `depth` is the depth of the collection itself for its start and end; `anchor` is 0 for a
    /// event without an anchor.
    pub(crate) fn record(&mut self, event: &NodeEvent<'_>, anchor: usize, depth: usize) {
        if anchor == 0 && self.open.is_empty() {
            return;
        }
        let start = self.tape.len();
        self.push(TapeEntry::Event(event.to_static()));
        if self.is_full {
            return;
        }
        match event {
            NodeEvent::MappingStart | NodeEvent::SequenceStart if anchor > 0 => {
                self.open.push(OpenAnchor {
                    anchor,
                    start,
                    depth,
                });
            }
            NodeEvent::Scalar(_) | NodeEvent::Null if anchor > 0 => {
                self.ranges.insert(anchor, start..start + 1);
            }
            NodeEvent::End => {
                if let Some(open) = self.open.pop_if(|open| open.depth == depth) {
                    self.ranges.insert(open.anchor, open.start..start + 1);
                }
            }
            _ => {}
        }
    }

    /// Records an alias if it is inside an anchored node.
    pub(crate) fn record_alias(&mut self, anchor: usize) {
        if self.open.is_empty() {
            return;
        }
        // An alias inside its own anchor would expand without end; it is recorded as null.
        let is_finished = self.ranges.contains_key(&anchor);
        self.push(if is_finished {
            TapeEntry::Alias(anchor)
        } else {
            TapeEntry::Event(NodeEvent::Null)
        });
    }

    /// Passes the content of `anchor` to the collector as if it were written at `line`.
    pub(crate) fn expand(
        &mut self,
        anchor: usize,
        collector: &mut Collector,
        line: usize,
    ) -> Result<(), ScanError> {
        let Some(range) = self.ranges.get(&anchor) else {
            return match self.is_full {
                true => Err(ScanError::TooComplex {
                    detail: "anchored content",
                }),
                false => collector.event(NodeEvent::Null, line),
            };
        };
        let mut pending = vec![range.clone()];
        while let Some(range) = pending.last_mut() {
            let Some(entry) = range.next().and_then(|at| self.tape.get(at)) else {
                pending.pop();
                continue;
            };
            let (event, weight) = match entry {
                TapeEntry::Alias(_) if collector.ignores_next() => (NodeEvent::Null, 1),
                TapeEntry::Alias(anchor) => {
                    pending.extend(self.ranges.get(anchor).cloned());
                    continue;
                }
                TapeEntry::Event(event) => (event.borrowed(), event.weight()),
            };
            self.allowance = self
                .allowance
                .checked_sub(weight)
                .ok_or(ScanError::AliasExpansion { line })?;
            collector.event(event, line)?;
        }
        Ok(())
    }

    fn push(&mut self, entry: TapeEntry) {
        if self.tape.len() < MAX_TAPE_ENTRIES {
            self.tape.push(entry);
        } else {
            self.is_full = true;
            self.open.clear();
        }
    }
}
