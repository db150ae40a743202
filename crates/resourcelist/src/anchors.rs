//! Records the content of anchors so that aliases in the results can be resolved.
//!
//! Only anchored nodes are recorded, on a tape of steps with a range per anchor. Expanding an alias
//! is iterative and limited by an allowance, so neither a chain of aliases nor an alias bomb costs
//! more than a multiple of the length of the text.

use std::collections::HashMap;
use std::ops::Range;

use crate::collector::Collector;
use crate::error::ScanError;
use crate::step::Step;

/// Maximum number of recorded steps; the envelope of a real list needs far fewer.
const TAPE_STEPS: usize = 1 << 18;
/// Weight to which aliases may expand in addition to the length of the text.
const SPARE_ALLOWANCE: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Anchors {
    tape: Vec<Kept>,
    /// Range of each closed anchor on the tape.
    ranges: HashMap<usize, Range<usize>>,
    /// Anchored collections that are still open, outermost first.
    open: Vec<Open>,
    is_full: bool,
    allowance: usize,
}

#[derive(Debug)]
enum Kept {
    Step(Step<'static>),
    Alias(usize),
}

#[derive(Debug)]
struct Open {
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
            allowance: text.len().saturating_add(SPARE_ALLOWANCE),
        }
    }

    /// Records a step if it belongs to an anchored node.
    ///
    /// `depth` is the depth of the collection itself for its start and end; `anchor` is 0 for a
    /// step without an anchor.
    pub(crate) fn observe(&mut self, step: &Step<'_>, anchor: usize, depth: usize) {
        if anchor == 0 && self.open.is_empty() {
            return;
        }
        let start = self.tape.len();
        self.keep(Kept::Step(step.to_static()));
        if self.is_full {
            return;
        }
        match step {
            Step::Map | Step::Seq if anchor > 0 => self.open.push(Open {
                anchor,
                start,
                depth,
            }),
            Step::Text(_) | Step::Null if anchor > 0 => {
                self.ranges.insert(anchor, start..start + 1);
            }
            Step::End => {
                if let Some(open) = self.open.pop_if(|open| open.depth == depth) {
                    self.ranges.insert(open.anchor, open.start..start + 1);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn observe_alias(&mut self, anchor: usize) {
        if self.open.is_empty() {
            return;
        }
        // An alias inside its own anchor would expand without end; it is recorded as null.
        let is_finished = self.ranges.contains_key(&anchor);
        self.keep(if is_finished {
            Kept::Alias(anchor)
        } else {
            Kept::Step(Step::Null)
        });
    }

    /// Passes the content of `anchor` to the collector as if it were written at `line`.
    pub(crate) fn play(
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
                false => collector.step(Step::Null, line),
            };
        };
        let mut playing = vec![range.clone()];
        while let Some(range) = playing.last_mut() {
            let Some(kept) = range.next().and_then(|at| self.tape.get(at)) else {
                playing.pop();
                continue;
            };
            let (step, weight) = match kept {
                Kept::Alias(_) if collector.is_indifferent() => (Step::Null, 1),
                Kept::Alias(anchor) => {
                    playing.extend(self.ranges.get(anchor).cloned());
                    continue;
                }
                Kept::Step(step) => (step.borrowed(), step.weight()),
            };
            self.allowance = self
                .allowance
                .checked_sub(weight)
                .ok_or(ScanError::AliasExpansion { line })?;
            collector.step(step, line)?;
        }
        Ok(())
    }

    fn keep(&mut self, kept: Kept) {
        if self.tape.len() < TAPE_STEPS {
            self.tape.push(kept);
        } else {
            self.is_full = true;
            self.open.clear();
        }
    }
}
