//! Builds the envelope from the events of a list and ignores all other events.
//!
//! The collector enters a fixed set of scopes only. Its depth is therefore bounded for any
//! document, except for merge keys inside merge keys.

mod result_field;
mod scope;

use crate::error::ScanError;
use crate::event::NodeEvent;
use crate::result::{Envelope, FunctionResult};
use result_field::ResultField;
use scope::{EnvelopeKey, Scope, ValueRole};

const KINDS: &[&str] = &["ResourceList"];
const API_VERSIONS: &[&str] = &["config.kubernetes.io/v1", "config.kubernetes.io/v1alpha1"];
/// Maximum number of results; more than a list with meaningful results can have.
const MAX_RESULTS: usize = 1 << 17;
/// Number of characters of an invalid value that an error quotes.
const QUOTED_CHARS: usize = 80;

/// The envelope so far, and the open collections that belong to it.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    frames: Vec<Frame>,
    /// Number of open ignored collections around the next event.
    ignored: usize,
    /// Keys of the envelope that occurred outside of merge keys, to detect duplicates.
    seen_keys: Vec<EnvelopeKey>,
    api_version: Option<EnvelopeValue>,
    kind: Option<EnvelopeValue>,
    results: Vec<FunctionResult>,
    /// Fields of the last result that have a value, except for tags.
    set_fields: Vec<ResultField>,
    /// Total number of events, which tests check for linear time.
    pub(crate) events: usize,
}

/// An open mapping or sequence that the collector has entered.
#[derive(Debug)]
struct Frame {
    scope: Scope,
    is_sequence: bool,
    /// Whether the entries come from a merge key; explicit values take precedence over them.
    merged: bool,
    /// The purpose of the next value, or `None` if a key is next.
    role: Option<ValueRole>,
}

/// A scalar of the envelope and its line.
#[derive(Debug)]
struct EnvelopeValue {
    text: String,
    line: usize,
}

// === impl Collector ===

impl Collector {
    /// Returns whether the next node is ignored, so that a reader may skip it and pass a single
    /// [`NodeEvent::Null`] instead.
    pub(crate) fn ignores_next(&self) -> bool {
        let role = self.frames.last().and_then(|frame| frame.role.as_ref());
        self.ignored > 0 || role == Some(&ValueRole::Ignored)
    }

    /// Processes the next event of the document, which is at `line`.
    pub(crate) fn event(&mut self, event: NodeEvent<'_>, line: usize) -> Result<(), ScanError> {
        self.events += 1;
        if self.ignored > 0 {
            match event {
                NodeEvent::MappingStart | NodeEvent::SequenceStart => self.ignored += 1,
                NodeEvent::End => self.ignored -= 1,
                NodeEvent::Scalar(_) | NodeEvent::Null => {}
            }
            return Ok(());
        }
        let Some(frame) = self.frames.last_mut() else {
            if event != NodeEvent::MappingStart {
                return Err(ScanError::NotAMapping { line });
            }
            self.enter(Scope::Root, false, false);
            return Ok(());
        };
        let (scope, merged) = (frame.scope, frame.merged);
        match frame.role.take() {
            _ if event == NodeEvent::End => drop(self.frames.pop()),
            _ if frame.is_sequence => self.entry(scope, merged, event)?,
            None => {
                let role = match &event {
                    NodeEvent::Scalar(key) => ValueRole::of(scope, key),
                    // A collection or null as a key is unknown, so its value is ignored as well.
                    _ => ValueRole::Ignored,
                };
                if let ValueRole::Envelope(key) = &role
                    && !merged
                {
                    self.record_key(*key, line)?;
                }
                self.expect_value(role);
                self.ignore(&event);
            }
            Some(role) => self.value(scope, merged, role, event, line)?,
        }
        Ok(())
    }

    /// Returns the envelope, or an error if the events were not those of a ResourceList.
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

    fn enter(&mut self, scope: Scope, is_sequence: bool, merged: bool) {
        self.frames.push(Frame {
            scope,
            is_sequence,
            merged,
            role: None,
        });
    }

    fn expect_value(&mut self, role: ValueRole) {
        if let Some(frame) = self.frames.last_mut() {
            frame.role = Some(role);
        }
    }

    /// Ignores a node; for a collection, with all its contents.
    fn ignore(&mut self, event: &NodeEvent<'_>) {
        if matches!(event, NodeEvent::MappingStart | NodeEvent::SequenceStart) {
            self.ignored = 1;
        }
    }

    fn record_key(&mut self, key: EnvelopeKey, line: usize) -> Result<(), ScanError> {
        if self.seen_keys.contains(&key) {
            return Err(ScanError::Duplicate {
                line,
                key: key.name(),
            });
        }
        self.seen_keys.push(key);
        Ok(())
    }

    fn entry(&mut self, scope: Scope, merged: bool, event: NodeEvent<'_>) -> Result<(), ScanError> {
        if self.results.len() == MAX_RESULTS {
            return Err(ScanError::TooComplex { detail: "results" });
        }
        match (scope, event) {
            (scope, NodeEvent::MappingStart) if merged => self.enter(scope, false, true),
            (Scope::Results, NodeEvent::MappingStart) => {
                self.results.push(FunctionResult::default());
                self.set_fields.clear();
                self.enter(Scope::Result, false, false);
            }
            (Scope::Results, NodeEvent::Scalar(text)) => {
                let message = text.into_owned();
                self.results.push(FunctionResult {
                    message,
                    ..FunctionResult::default()
                });
            }
            (_, event) => self.ignore(&event),
        }
        Ok(())
    }

    fn value(
        &mut self,
        scope: Scope,
        merged: bool,
        role: ValueRole,
        event: NodeEvent<'_>,
        line: usize,
    ) -> Result<(), ScanError> {
        match (role, event) {
            (ValueRole::Envelope(EnvelopeKey::ApiVersion), event) => {
                let value = EnvelopeValue::new("apiVersion", event, API_VERSIONS, line)?;
                set_value(&mut self.api_version, value, merged);
            }
            (ValueRole::Envelope(EnvelopeKey::Kind), event) => {
                set_value(
                    &mut self.kind,
                    EnvelopeValue::new("kind", event, KINDS, line)?,
                    merged,
                );
            }
            // Explicit results replace merged ones and are not replaced by them.
            (
                ValueRole::Envelope(EnvelopeKey::Results),
                event @ (NodeEvent::MappingStart | NodeEvent::SequenceStart),
            ) => {
                if merged && self.seen_keys.contains(&EnvelopeKey::Results) {
                    self.ignore(&event);
                } else {
                    self.results.clear();
                    self.enter(
                        Scope::results(&event),
                        event == NodeEvent::SequenceStart,
                        false,
                    );
                }
            }
            (ValueRole::Merge, event @ (NodeEvent::MappingStart | NodeEvent::SequenceStart)) => {
                self.enter(scope, event == NodeEvent::SequenceStart, true);
            }
            (ValueRole::Sequence(scope), NodeEvent::SequenceStart) => {
                self.enter(scope, true, false);
            }
            (ValueRole::Mapping(scope), NodeEvent::MappingStart) => {
                self.enter(scope, false, merged);
            }
            (ValueRole::ResultField(field), NodeEvent::Scalar(text)) => {
                if let Some(result) = self.results.last_mut() {
                    field.set(result, &mut self.set_fields, text.into_owned(), merged);
                }
            }
            (_, event) => self.ignore(&event),
        }
        Ok(())
    }
}

fn set_value(target: &mut Option<EnvelopeValue>, value: EnvelopeValue, merged: bool) {
    if !merged || target.is_none() {
        *target = Some(value);
    }
}

// === impl EnvelopeValue ===

impl EnvelopeValue {
    fn new(
        key: &'static str,
        event: NodeEvent<'_>,
        known: &[&str],
        line: usize,
    ) -> Result<Self, ScanError> {
        let found = match event {
            NodeEvent::Scalar(text) => {
                return Ok(Self {
                    text: text.into_owned(),
                    line,
                });
            }
            NodeEvent::Null | NodeEvent::End => "empty",
            NodeEvent::MappingStart => "a mapping",
            NodeEvent::SequenceStart => "a sequence",
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
