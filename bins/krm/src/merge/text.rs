//! Text of a resource after an evaluation.

use std::collections::HashSet;

use crate::{
    list::{Item, annotations::without_place},
    package::Document,
    patch::patch,
    yaml::{Node, comments, lines, render, render::Renderer, resolve, same},
};

/// Returns the new text of an existing resource, or `None` if it is unchanged.
///
/// The author's text is edited where the meaning changed. Only if the function adds comments is its
/// text used as a whole: such a function preserves comments, and its comments are part of its
/// result.
pub fn merged(document: &Document, item: &Item) -> Option<String> {
    let original = document.root.as_ref()?;
    let wanted = without_place(&item.root, Some(original));
    let comments_known: HashSet<&str> = comments(&document.text, original).into_iter().collect();
    let comments_new = comments(&item.text, &item.root)
        .iter()
        .any(|comment| !comments_known.contains(comment));
    if !comments_new {
        if means_the_same(original, &wanted) {
            return None;
        }
        if let Some(text) = patch(&document.text, original, &wanted, &item.text) {
            return Some(text);
        }
    }
    let text = own(item, &wanted, original.flow);
    Some(with_head_comments(document, original, text))
}

/// Returns the text of a new resource.
pub fn fresh(item: &Item, json: bool) -> String {
    own(item, &without_place(&item.root, None), json)
}

/// Returns the function's own text without place annotations, as JSON or YAML like the target file.
fn own(item: &Item, wanted: &Node, json: bool) -> String {
    let text = if json == item.root.flow {
        patch(&item.text, &item.root, wanted, &item.text)
    } else {
        None
    };
    let text = text.unwrap_or_else(|| {
        if json {
            render::json(wanted, &item.text)
        } else {
            Renderer::new(&item.text).document(wanted)
        }
    });
    text.trim_end().to_owned()
}

/// Compares two resources, where empty annotations equal absent ones.
fn means_the_same(original: &Node, wanted: &Node) -> bool {
    let plain = |node: &Node| resolve(&without_place(node, None));
    match (plain(original), plain(wanted)) {
        (Some(original), Some(wanted)) => same(&original, &wanted),
        _ => same(original, wanted),
    }
}

/// Restores the comments above a resource if the function left none there.
fn with_head_comments(document: &Document, original: &Node, text: String) -> String {
    let head = &document.text[..lines::start(&document.text, original.start)];
    if head.trim().is_empty() || text.starts_with(['#', '{']) {
        text
    } else {
        format!("{head}{text}")
    }
}
