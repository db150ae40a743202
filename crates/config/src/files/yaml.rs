//! Parses YAML with line numbers, and finds unknown fields.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    DefaultMessageFormatter, Localizer, Location, MessageFormatter, SnippetMode, Spanned,
};

use super::{ConfigError, EntryError};
use crate::{Problem, Source};

/// The shape of a document: whether it is a list or a map, and the lines of its fields.
#[derive(Debug)]
pub(super) enum Shape {
    Empty,
    Scalar,
    List(Vec<Shape>),
    Map(Vec<(Spanned<String>, Shape)>),
}

/// A formatter of error messages without the line, which the error's source already names.
struct WithoutLocation;

impl MessageFormatter for WithoutLocation {
    fn localizer(&self) -> &dyn Localizer {
        self
    }

    fn format_message<'a>(&self, error: &'a serde_saphyr::Error) -> Cow<'a, str> {
        DefaultMessageFormatter.format_message(error)
    }
}

impl Localizer for WithoutLocation {
    fn attach_location<'a>(&self, message: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        message
    }
}

/// Parses a document; an error names the line.
pub(super) fn parse<T: DeserializeOwned>(text: &str, file: &Source) -> Result<T, ConfigError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        let options = serde_saphyr::render_options! {
            formatter: &WithoutLocation,
            snippets: SnippetMode::Off,
        };
        malformed(file, line, error.render_with_options(options))
    })
}

pub(super) fn malformed(file: &Source, line: u64, message: impl Into<String>) -> ConfigError {
    ConfigError::Malformed {
        location: file.at_line(line),
        message: message.into(),
    }
}

pub(super) fn invalid(file: &Source, line: u64, error: impl Into<EntryError>) -> ConfigError {
    ConfigError::Entry {
        location: file.at_line(line),
        error: error.into(),
    }
}

// === impl Shape ===

impl Shape {
    /// Adds a warning for each unknown field.
    pub(super) fn warn_of_unknown(&self, known: &[&str], file: &Source, into: &mut Vec<Problem>) {
        let Self::Map(fields) = self else { return };
        for (field, _) in fields
            .iter()
            .filter(|(field, _)| !known.contains(&field.value.as_str()))
        {
            let message = format!(
                "unknown field {:?} is ignored: known are {}",
                field.value,
                known.join(", ")
            );
            into.push(Problem::warning(
                &file.at_line(field.referenced.line()),
                message,
            ));
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(fields) => fields
                .iter()
                .find(|(field, _)| field.value == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the items of a list; empty for any other shape.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Empty)
    }

    fn visit_none<E>(self) -> Result<Shape, E> {
        Ok(Shape::Empty)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        Shape::deserialize(deserializer)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_key()? {
            fields.push((field, map.next_value()?));
        }
        Ok(Shape::Map(fields))
    }
}
