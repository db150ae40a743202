//! Adds the label to the resources of a list.

use std::fmt::Write;

use crate::tree::{self, Node};

/// The label that every resource gets.
struct Label<'a> {
    key: &'a str,
    value: &'a str,
}

/// A replacement of the bytes `start..end` of the list by `text`.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// Returns the list with the label on every resource, and with a result for each changed resource.
///
/// # Errors
/// Returns a message if the list, its configuration or one of its resources cannot be used.
pub fn apply(list: &str) -> Result<String, String> {
    let root = tree::parse(list)?;
    if root.at(&["kind"]) != "ResourceList" {
        return Err("the input is not a ResourceList".to_owned());
    }
    let label = Label::read(&root)?;
    let mut edits = Vec::new();
    let mut results = String::new();
    for item in root.get("items").map_or(&[][..], Node::items) {
        let annotations = ["metadata", "annotations"];
        let annotation = |key| item.at(&[annotations[0], annotations[1], key]);
        // A local resource is never applied to a cluster and needs no label.
        if annotation("config.kubernetes.io/local-config") == "true" {
            continue;
        }
        if item.at(&["metadata", "labels", label.key]) == label.value {
            continue;
        }
        edits.push(label.edit(list, item)?);
        label.report(
            item,
            annotation("internal.config.kubernetes.io/path"),
            &mut results,
        );
    }
    eprintln!(
        "{}={} set on resources: {}",
        label.key,
        label.value,
        edits.len()
    );
    let mut labelled = String::with_capacity(list.len() + edits.len() * 32);
    let mut at = 0;
    for edit in edits {
        labelled.push_str(&list[at..edit.start]);
        labelled.push_str(&edit.text);
        at = edit.end;
    }
    labelled.push_str(&list[at..]);
    // A block of results cannot be appended to JSON, or to a list that has results already.
    if !results.is_empty() && !root.flow && root.get("results").is_none() {
        if !labelled.ends_with('\n') {
            labelled.push('\n');
        }
        let _ = write!(labelled, "results:\n{results}");
    }
    Ok(labelled)
}

// === impl Label ===

impl<'a> Label<'a> {
    fn read(root: &'a Node) -> Result<Self, String> {
        let field = |key| root.at(&["functionConfig", "data", key]);
        let label = Self {
            key: field("label"),
            value: field("value"),
        };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = label.key.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || !label.key.chars().all(|c| is_allowed(c) || c == '/') {
            return Err(format!(
                "data.label of the functionConfig is not a label key: {:?}",
                label.key
            ));
        }
        if label.value.len() > 63 || !label.value.chars().all(is_allowed) {
            return Err(format!(
                "data.value of the functionConfig is not a label value: {:?}",
                label.value
            ));
        }
        Ok(label)
    }

    /// Returns the edit that gives a resource the label.
    fn edit(&self, list: &str, item: &Node) -> Result<Edit, String> {
        let Self { key, value } = self;
        let mut node = item;
        let mut missing = vec!["metadata", "labels", key];
        while let Some(next) = missing.first().and_then(|key| node.get(key)) {
            if next.entries().is_none() {
                // The label has another value, or `metadata:` or `labels:` has no value.
                let old = next
                    .text()
                    .ok_or("labels behind an alias cannot be changed")?;
                missing.remove(0);
                return replace(list, next, old, &json(&missing, value));
            }
            missing.remove(0);
            node = next;
        }
        let entries = node
            .entries()
            .ok_or("an item of the list is not a mapping")?;
        let insert = |start, text| {
            Ok(Edit {
                start,
                end: start,
                text,
            })
        };
        let inner = json(&missing[1..], value);
        match entries.first() {
            _ if node.flow => {
                let comma = if entries.is_empty() { "" } else { ", " };
                insert(
                    node.start + 1,
                    format!("\"{}\": {inner}{comma}", missing[0]),
                )
            }
            Some((first, _)) => {
                let line = list[..first.start]
                    .rfind('\n')
                    .map_or(0, |newline| newline + 1);
                let column = list[line..first.start].chars().count();
                insert(first.start, block(&missing, value, column))
            }
            None => Err("an item of the list is empty".to_owned()),
        }
    }

    fn report(&self, item: &Node, path: &str, results: &mut String) {
        let Self { key, value } = self;
        let _ = write!(
            results,
            "- message: \"set {key} to {value}\"\n  severity: info\n  resourceRef:\n    \
             apiVersion: {}\n    kind: {}\n    name: {}\n    namespace: {}\n  field:\n    \
             path: metadata.labels.{key}\n",
            quoted(item.at(&["apiVersion"])),
            quoted(item.at(&["kind"])),
            quoted(item.at(&["metadata", "name"])),
            quoted(item.at(&["metadata", "namespace"])),
        );
        if !path.is_empty() {
            let _ = writeln!(results, "  file:\n    path: {}", quoted(path));
        }
    }
}

/// Returns the edit that replaces a scalar on a single line by another.
fn replace(list: &str, node: &Node, old: &str, new: &str) -> Result<Edit, String> {
    let rest = &list[node.start..];
    if old.is_empty() && !rest.starts_with(['"', '\'']) {
        // The value is missing and is inserted after the colon of the key.
        let colon = rest.find(':').ok_or("a key has no colon")?;
        let start = node.start + colon + 1;
        return Ok(Edit {
            start,
            end: start,
            text: format!(" {new}"),
        });
    }
    let written = [old.to_owned(), format!("\"{old}\""), format!("'{old}'")];
    let written = written
        .iter()
        .find(|written| rest.starts_with(written.as_str()));
    let length = written
        .ok_or("a label's value is written in a way that cannot be changed")?
        .len();
    Ok(Edit {
        start: node.start,
        end: node.start + length,
        text: new.to_owned(),
    })
}

/// Returns nested keys as lines to insert before the first key, which is at `column`.
fn block(keys: &[&str], value: &str, column: usize) -> String {
    let mut text = String::new();
    for (depth, key) in keys.iter().enumerate() {
        let is_last = depth + 1 == keys.len();
        let end = if is_last {
            format!(" \"{value}\"")
        } else {
            String::new()
        };
        let next = if is_last {
            column
        } else {
            column + 2 * (depth + 1)
        };
        let _ = write!(text, "{}:{end}\n{}", plain(key), " ".repeat(next));
    }
    text
}

/// Returns the value inside nested keys, in JSON.
fn json(keys: &[&str], value: &str) -> String {
    keys.iter()
        .rev()
        .fold(format!("\"{value}\""), |inner, key| {
            format!("{{\"{key}\": {inner}}}")
        })
}

/// Returns a key, in quotes if YAML could read it as a number or a boolean.
fn plain(key: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_word = words.iter().any(|word| key.eq_ignore_ascii_case(word));
    if key.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_word {
        key.to_owned()
    } else {
        format!("\"{key}\"")
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
