//! Builds the envelope from the steps of a list and ignores all other steps.
//!
//! The collector enters a fixed set of places only. Its depth is therefore bounded for any
//! document, except for merge keys inside merge keys.

mod part;
mod place;

use crate::error::ScanError;
use crate::result::{Envelope, FunctionResult};
use crate::step::Step;
use part::Part;
use place::{Key, Place, Slot};

const KINDS: &[&str] = &["ResourceList"];
const API_VERSIONS: &[&str] = &["config.kubernetes.io/v1", "config.kubernetes.io/v1alpha1"];
/// Maximum number of results; more than a list with meaningful results can have.
const MAX_RESULTS: usize = 1 << 17;
/// Number of characters of an invalid value that an error quotes.
const QUOTED_CHARS: usize = 80;

#[derive(Debug, Default)]
pub(crate) struct Collector {
    frames: Vec<Frame>,
    /// Number of open ignored collections around the next step.
    ignored: usize,
    /// Keys of the envelope that occurred outside of merge keys, to detect duplicates.
    given: Vec<Key>,
    api_version: Option<Said>,
    kind: Option<Said>,
    results: Vec<FunctionResult>,
    /// Parts of the last result that have a value, except for tags.
    filled: Vec<Part>,
    /// Total number of steps, checked by the tests for linear time.
    pub(crate) steps: usize,
}

/// An open mapping or sequence that the collector has entered.
#[derive(Debug)]
struct Frame {
    place: Place,
    is_sequence: bool,
    /// Whether the entries come from a merge key; explicit values take precedence over them.
    merged: bool,
    /// The purpose of the next value, or `None` if a key is next.
    slot: Option<Slot>,
}

/// A scalar of the envelope and its line.
#[derive(Debug)]
struct Said {
    text: String,
    line: usize,
}

// === impl Collector ===

impl Collector {
    /// Returns whether the next node is ignored, so that a reader may skip it and pass a single
    /// [`Step::Null`] instead.
    pub(crate) fn is_indifferent(&self) -> bool {
        let slot = self.frames.last().and_then(|frame| frame.slot.as_ref());
        self.ignored > 0 || slot == Some(&Slot::Ignored)
    }

    pub(crate) fn step(&mut self, step: Step<'_>, line: usize) -> Result<(), ScanError> {
        self.steps += 1;
        if self.ignored > 0 {
            match step {
                Step::Map | Step::Seq => self.ignored += 1,
                Step::End => self.ignored -= 1,
                Step::Text(_) | Step::Null => {}
            }
            return Ok(());
        }
        let Some(frame) = self.frames.last_mut() else {
            if step != Step::Map {
                return Err(ScanError::NotAMapping { line });
            }
            self.enter(Place::Root, false, false);
            return Ok(());
        };
        let (place, merged) = (frame.place, frame.merged);
        match frame.slot.take() {
            _ if step == Step::End => drop(self.frames.pop()),
            _ if frame.is_sequence => self.entry(place, merged, step)?,
            None => {
                let slot = match &step {
                    Step::Text(key) => Slot::of(place, key),
                    // A collection or null as a key is unknown, so its value is ignored as well.
                    _ => Slot::Ignored,
                };
                if let Slot::Envelope(key) = &slot
                    && !merged
                {
                    self.give(*key, line)?;
                }
                self.await_value(slot);
                self.ignore(&step);
            }
            Some(slot) => self.value(place, merged, slot, step, line)?,
        }
        Ok(())
    }

    /// Returns the envelope, or an error if the steps were not those of a ResourceList.
    pub(crate) fn finish(self) -> Result<Envelope, ScanError> {
        let kind = self.kind.ok_or(ScanError::Missing { key: "kind" })?;
        kind.one_of("kind", KINDS)?;
        let api_version = self
            .api_version
            .ok_or(ScanError::Missing { key: "apiVersion" })?;
        let api_version = api_version.one_of("apiVersion", API_VERSIONS)?;
        Ok(Envelope {
            api_version,
            results: self.results,
        })
    }

    fn enter(&mut self, place: Place, is_sequence: bool, merged: bool) {
        self.frames.push(Frame {
            place,
            is_sequence,
            merged,
            slot: None,
        });
    }

    fn await_value(&mut self, slot: Slot) {
        if let Some(frame) = self.frames.last_mut() {
            frame.slot = Some(slot);
        }
    }

    /// Ignores a node; for a collection, with all its contents.
    fn ignore(&mut self, step: &Step<'_>) {
        if matches!(step, Step::Map | Step::Seq) {
            self.ignored = 1;
        }
    }

    fn give(&mut self, key: Key, line: usize) -> Result<(), ScanError> {
        if self.given.contains(&key) {
            return Err(ScanError::Duplicate {
                line,
                key: key.name(),
            });
        }
        self.given.push(key);
        Ok(())
    }

    fn entry(&mut self, place: Place, merged: bool, step: Step<'_>) -> Result<(), ScanError> {
        if self.results.len() == MAX_RESULTS {
            return Err(ScanError::TooComplex { detail: "results" });
        }
        match (place, step) {
            (place, Step::Map) if merged => self.enter(place, false, true),
            (Place::Results, Step::Map) => {
                self.results.push(FunctionResult::default());
                self.filled.clear();
                self.enter(Place::Result, false, false);
            }
            (Place::Results, Step::Text(text)) => {
                let message = text.into_owned();
                self.results.push(FunctionResult {
                    message,
                    ..FunctionResult::default()
                });
            }
            (_, step) => self.ignore(&step),
        }
        Ok(())
    }

    fn value(
        &mut self,
        place: Place,
        merged: bool,
        slot: Slot,
        step: Step<'_>,
        line: usize,
    ) -> Result<(), ScanError> {
        match (slot, step) {
            (Slot::Envelope(Key::ApiVersion), step) => {
                let said = Said::new("apiVersion", step, API_VERSIONS, line)?;
                keep(&mut self.api_version, said, merged);
            }
            (Slot::Envelope(Key::Kind), step) => {
                keep(
                    &mut self.kind,
                    Said::new("kind", step, KINDS, line)?,
                    merged,
                );
            }
            // Explicit results replace merged ones and are not replaced by them.
            (Slot::Envelope(Key::Results), step @ (Step::Map | Step::Seq)) => {
                if merged && self.given.contains(&Key::Results) {
                    self.ignore(&step);
                } else {
                    self.results.clear();
                    self.enter(Place::results(&step), step == Step::Seq, false);
                }
            }
            (Slot::Merge, step @ (Step::Map | Step::Seq)) => {
                self.enter(place, step == Step::Seq, true);
            }
            (Slot::Sequence(place), Step::Seq) => self.enter(place, true, false),
            (Slot::Mapping(place), Step::Map) => self.enter(place, false, merged),
            (Slot::Part(part), Step::Text(text)) => {
                if let Some(result) = self.results.last_mut() {
                    part.fill(result, &mut self.filled, text.into_owned(), merged);
                }
            }
            (_, step) => self.ignore(&step),
        }
        Ok(())
    }
}

fn keep(target: &mut Option<Said>, said: Said, merged: bool) {
    if !merged || target.is_none() {
        *target = Some(said);
    }
}

// === impl Said ===

impl Said {
    fn new(
        key: &'static str,
        step: Step<'_>,
        known: &[&str],
        line: usize,
    ) -> Result<Self, ScanError> {
        let found = match step {
            Step::Text(text) => {
                return Ok(Self {
                    text: text.into_owned(),
                    line,
                });
            }
            Step::Null | Step::End => "empty",
            Step::Map => "a mapping",
            Step::Seq => "a sequence",
        };
        let expected = known.join(" or ");
        Err(ScanError::Unexpected {
            line,
            key,
            found: found.to_owned(),
            expected,
        })
    }

    fn one_of(self, key: &'static str, known: &[&str]) -> Result<String, ScanError> {
        if known.contains(&self.text.as_str()) {
            return Ok(self.text);
        }
        let mut quoted: String = self.text.chars().take(QUOTED_CHARS).collect();
        if quoted.len() < self.text.len() {
            quoted.push('…');
        }
        let found = format!("{quoted:?}");
        Err(ScanError::Unexpected {
            line: self.line,
            key,
            found,
            expected: known.join(" or "),
        })
    }
}
