//! Fields of an event or span as JSON values with unique names.

use std::{error::Error, fmt};

use runner_core::with_causes;
use serde_json::{Number, Value};
use tracing::field::{Field, Visit};

/// Named values in the order in which they were recorded.
#[derive(Debug, Default)]
pub(super) struct Fields {
    values: Vec<(&'static str, Value)>,
    message: Option<String>,
}

// === impl Fields ===

impl Fields {
    /// Takes the message of the event, which is not one of the fields.
    pub(super) fn take_message(&mut self) -> Option<String> {
        self.message.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        self.values.iter()
    }

    /// Adds the fields of an outer span whose names are not present yet.
    pub(super) fn extend(&mut self, outer: &Self) {
        for (name, value) in &outer.values {
            if !self.values.iter().any(|(existing, _)| existing == name) {
                self.values.push((name, value.clone()));
            }
        }
    }

    /// Sets the given fields, overwriting existing values.
    pub(super) fn replace(&mut self, new: Self) {
        for (name, value) in new.values {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self
            .values
            .iter_mut()
            .find(|(existing, _)| *existing == name)
        {
            Some((_, existing)) => *existing = value,
            None => self.values.push((name, value)),
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.set(name_of(field), value.into());
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match Number::from_f64(value) {
            Some(number) => self.put(field, number),
            None => self.put(field, value.to_string()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = Some(value.to_owned());
        } else {
            self.put(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, with_causes(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Returns the field's name, with the prefix `field.` if the line itself uses that name.
fn name_of(field: &Field) -> &'static str {
    match field.name() {
        "time" => "field.time",
        "level" => "field.level",
        "target" => "field.target",
        "trace_id" => "field.trace_id",
        "span_id" => "field.span_id",
        name => name.strip_prefix("r#").unwrap_or(name),
    }
}
