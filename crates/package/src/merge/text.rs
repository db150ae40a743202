//! Text of a resource after an evaluation.

use std::collections::HashSet;

use runner_yaml::{Node, comments, lines, patch, resolve, same, to_json, to_yaml};

use crate::{annotations::without_location, answer::Item, package::Resource};

/// Returns the new text of an existing resource, or `None` if it is unchanged.
///
/// The author's text is edited where the meaning changed. Only if the function adds comments is its
/// text used as a whole: such a function preserves comments, and its comments are part of its
/// result.
pub(super) fn merged(resource: &Resource<'_>, item: &Item) -> Option<String> {
    let (original, source) = (resource.root, resource.document.text());
    let wanted = without_location(&item.root, Some(original));
    let comments_known: HashSet<&str> = comments(source, original).into_iter().collect();
    let comments_new = comments(&item.text, &item.root)
        .iter()
        .any(|comment| !comments_known.contains(comment));
    if !comments_new {
        if means_the_same(original, &wanted) {
            return None;
        }
        if let Some(text) = patch(source, original, &wanted, &item.text) {
            return Some(text);
        }
    }
    let text = rendered(item, &wanted, original.flow);
    Some(with_head_comments(source, original, text))
}

/// Returns the text of a new resource.
pub(super) fn added(item: &Item, json: bool) -> String {
    rendered(item, &without_location(&item.root, None), json)
}

/// Returns the function's own text without location annotations, as JSON or YAML like the target
/// file.
fn rendered(item: &Item, wanted: &Node, json: bool) -> String {
    let text = if json == item.root.flow {
        patch(&item.text, &item.root, wanted, &item.text)
    } else {
        None
    };
    let text = text.unwrap_or_else(|| {
        if json {
            to_json(wanted, &item.text)
        } else {
            to_yaml(wanted, &item.text)
        }
    });
    text.trim_end().to_owned()
}

/// Compares two resources, where empty annotations equal absent ones.
fn means_the_same(original: &Node, wanted: &Node) -> bool {
    let plain = |node: &Node| resolve(&without_location(node, None));
    match (plain(original), plain(wanted)) {
        (Some(original), Some(wanted)) => same(&original, &wanted),
        _ => same(original, wanted),
    }
}

/// Restores the comments above a resource if the function left none there.
fn with_head_comments(source: &str, original: &Node, text: String) -> String {
    let head = &source[..lines::start(source, original.start)];
    if head.trim().is_empty() || text.starts_with(['#', '{']) {
        text
    } else {
        format!("{head}{text}")
    }
}
