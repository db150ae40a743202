//! Fields of an event or span as JSON values, each name once.

use std::{error::Error, fmt};

use serde_json::{Number, Value};
use tracing::field::{Field, Visit};

/// Named values in the order they were given.
#[derive(Debug, Default)]
pub(super) struct Fields {
    values: Vec<(&'static str, Value)>,
    message: Option<String>,
}

// === impl Fields ===

impl Fields {
    /// The text of the event, which is no field in the output.
    pub(super) fn take_message(&mut self) -> Option<String> {
        self.message.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        self.values.iter()
    }

    /// Adds what an outer span says and this one does not.
    pub(super) fn extend(&mut self, outer: &Self) {
        for (name, value) in &outer.values {
            if !self.values.iter().any(|(known, _)| known == name) {
                self.values.push((name, value.clone()));
            }
        }
    }

    /// Takes over later values.
    pub(super) fn replace(&mut self, later: Self) {
        for (name, value) in later.values {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
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
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        self.put(field, text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// The field's name, unless a line has that name already for something else.
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
