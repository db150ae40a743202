//! Generators of lists with arbitrary content in arbitrary ordinary layouts.

use proptest::prelude::*;

use crate::{Envelope, Field, FunctionResult, ResourceRef, Severity};

/// Arbitrary content of an item.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Map(Vec<(String, Value)>),
    Seq(Vec<Value>),
}

/// A generated list: the expected envelope and the top-level keys in order.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) envelope: Envelope,
    keys: Vec<(String, Value)>,
}

/// Layout choices that must not affect the result.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    indented_sequences: bool,
    carriage_returns: bool,
    comments: bool,
    marker: bool,
    /// Scalar styles, used in rotation.
    styles: Vec<u8>,
}

fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "results:",
        "kind: ResourceList",
        "- a",
        "---",
        "...",
        "{",
        "]",
        "\"",
        "'",
        "#",
        " #",
        ": ",
        "\n",
        "\n\n",
        "\nresults:\n- message: no",
        "\nkind: Pod\n",
        "\\",
        "é",
        "😀",
        "&a",
        "*a",
        "!t",
        "%",
        "@",
        "|",
        ">",
        "<<",
        "~",
        "null",
        "0x1",
        "\t",
        "a",
        "b c",
        ",",
        "",
    ]);
    prop::collection::vec(words, 0..5).prop_map(|words| words.concat())
}

fn value() -> impl Strategy<Value = Value> {
    text()
        .prop_map(Value::Text)
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Seq),
                prop::collection::vec((key(), inner), 0..4).prop_map(Value::Map),
            ]
        })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["results", "kind", "apiVersion", "items", "message"])
            .prop_map(str::to_owned),
        text(),
    ]
}

fn result() -> impl Strategy<Value = FunctionResult> {
    let severity = prop::sample::select(vec![Severity::Error, Severity::Warning, Severity::Info]);
    let tags = prop::collection::btree_map("[a-z]{1,3}", text(), 0..3);
    (
        text(),
        severity,
        prop::option::of(text()),
        prop::option::of(text()),
        tags,
    )
        .prop_map(|(message, severity, name, path, tags)| FunctionResult {
            message,
            severity,
            resource_ref: name.map(|name| ResourceRef {
                name,
                ..ResourceRef::default()
            }),
            field: path.map(|path| Field {
                path,
                ..Field::default()
            }),
            file: None,
            tags,
        })
}

pub(super) fn list() -> impl Strategy<Value = List> {
    let extra = prop::collection::vec(("x[a-zA-Z0-9._/-]{0,8}", value()), 0..3);
    let results = prop::collection::vec(result(), 0..4);
    (results, prop::collection::vec(value(), 0..4), extra)
        .prop_flat_map(|(results, items, extra)| {
            let word = |text: &str| Value::Text(text.to_owned());
            let mut keys = vec![
                ("apiVersion".to_owned(), word("config.kubernetes.io/v1")),
                ("kind".to_owned(), word("ResourceList")),
                ("items".to_owned(), Value::Seq(items)),
                (
                    "results".to_owned(),
                    Value::Seq(results.iter().map(Value::of_result).collect()),
                ),
            ];
            keys.extend(extra);
            let api_version = "config.kubernetes.io/v1".to_owned();
            (
                Just(Envelope {
                    api_version,
                    results,
                }),
                Just(keys).prop_shuffle(),
            )
        })
        .prop_map(|(envelope, keys)| List { envelope, keys })
}

pub(super) fn layout() -> impl Strategy<Value = Layout> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, prop::collection::vec(any::<u8>(), 1..16)).prop_map(
        |((indented_sequences, carriage_returns, comments, marker), styles)| Layout {
            indented_sequences,
            carriage_returns,
            comments,
            marker,
            styles,
        },
    )
}

// === impl Value ===

impl Value {
    fn of_result(result: &FunctionResult) -> Self {
        let word = |text: &str| Self::Text(text.to_owned());
        let single = |key: &str, text: &str| Self::Map(vec![(key.to_owned(), word(text))]);
        let tags = result
            .tags
            .iter()
            .map(|(name, text)| (name.clone(), word(text)))
            .collect();
        let mut keys = vec![
            ("message".to_owned(), word(&result.message)),
            ("severity".to_owned(), word(&result.severity.to_string())),
            ("tags".to_owned(), Self::Map(tags)),
        ];
        if let Some(resource) = &result.resource_ref {
            keys.push(("resourceRef".to_owned(), single("name", &resource.name)));
        }
        if let Some(field) = &result.field {
            keys.push(("field".to_owned(), single("path", &field.path)));
        }
        Self::Map(keys)
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::Seq(entries) => {
                out.push('[');
                for (index, entry) in entries.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    entry.write_json(out);
                }
                out.push(']');
            }
            Self::Map(entries) => write_json_map(entries, out),
        }
    }
}

// === impl List ===

impl List {
    pub(super) fn json(&self) -> String {
        let mut out = String::new();
        write_json_map(&self.keys, &mut out);
        out
    }

    pub(super) fn yaml(&self, layout: &Layout) -> String {
        let mut writer = Writer {
            layout,
            scalars: 0,
            out: String::new(),
        };
        if layout.marker {
            writer.out.push_str("---\n");
        }
        for (key, value) in &self.keys {
            if layout.comments {
                writer.out.push_str("# results:\n");
            }
            writer.out.push_str(key);
            writer.out.push(':');
            writer.value(value, 0);
        }
        if layout.carriage_returns {
            writer.out.replace('\n', "\r\n")
        } else {
            writer.out
        }
    }
}

struct Writer<'a> {
    layout: &'a Layout,
    scalars: usize,
    out: String,
}

// === impl Writer ===

impl Writer<'_> {
    /// Writes the text after a key's colon or a sequence's dash at `indent`.
    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Text(text) => self.scalar(text, indent),
            Value::Seq(entries) if entries.is_empty() => self.out.push_str(" []\n"),
            Value::Map(entries) if entries.is_empty() => self.out.push_str(" {}\n"),
            Value::Seq(entries) => {
                self.out.push('\n');
                let indent = if self.layout.indented_sequences {
                    indent + 2
                } else {
                    indent
                };
                for entry in entries {
                    self.out.push_str(&" ".repeat(indent));
                    self.out.push('-');
                    // Inside an entry, even sequences must be indented further.
                    self.value(entry, indent + 2);
                }
            }
            Value::Map(entries) => {
                self.out.push_str(if self.layout.comments {
                    " # kind: x\n"
                } else {
                    "\n"
                });
                for (key, value) in entries {
                    self.out.push_str(&" ".repeat(indent + 2));
                    self.out.push_str(&quoted(key));
                    self.out.push(':');
                    self.value(value, indent + 2);
                }
            }
        }
    }

    fn scalar(&mut self, text: &str, indent: usize) {
        let styles = &self.layout.styles;
        let style = styles[self.scalars % styles.len()] % 4;
        self.scalars += 1;
        let is_plain = !text.is_empty()
            && text != "null"
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '/');
        let is_literal = text.ends_with(|c: char| c.is_alphanumeric())
            && text.starts_with(|c: char| c.is_alphanumeric());
        let inner = " ".repeat(indent + 2);
        match style {
            0 if is_plain => self.out.push_str(&format!(" {text}\n")),
            1 if !text.contains('\n') => {
                self.out
                    .push_str(&format!(" '{}'\n", text.replace('\'', "''")));
            }
            2 if is_literal => {
                self.out.push_str(" |-\n");
                for line in text.split('\n') {
                    // An empty line may be written without indentation.
                    let inner = if line.is_empty() { "" } else { &inner };
                    self.out.push_str(&format!("{inner}{line}\n"));
                }
            }
            // A quoted scalar may start on the next line and may continue after an escaped line
            // break, but not with a space.
            3 if !text.contains("a ") => {
                let broken = quoted(text).replace("a", &format!("a\\\n{inner}"));
                self.out.push_str(&format!("\n{inner}{broken}\n"));
            }
            _ => self.out.push_str(&format!(" {}\n", quoted(text))),
        }
    }
}

fn write_json_map(entries: &[(String, Value)], out: &mut String) {
    out.push('{');
    for (index, (key, value)) in entries.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        out.push_str(&quoted(key));
        out.push_str(": ");
        value.write_json(out);
    }
    out.push('}');
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
