//! Cutting the resources out of a function's answer.

use crate::yaml::{Node, ParseError, documents, lines, render::Renderer, resolve, single};

/// One resource of an answer.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its text, comments above it included, without a last newline.
    pub text: String,
    /// What it says; its places count in `text`.
    pub root: Node,
}

/// An answer that cannot be taken apart.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// It is not text.
    #[error("the function's answer is not UTF-8 text")]
    NotText(#[from] std::str::Utf8Error),
    /// It is not YAML.
    #[error("the function's answer is not YAML: {0}")]
    Parse(#[from] ParseError),
    /// Its aliases refer to nothing, or to too much.
    #[error("item {0} of the function's answer has aliases that cannot be resolved")]
    Alias(usize),
    /// An item is not a mapping.
    #[error("item {0} of the function's answer is not a resource")]
    NotAResource(usize),
}

/// The resources of an answer, in order.
///
/// # Errors
/// When the answer is not a list of mappings.
pub fn split(answer: &[u8]) -> Result<Vec<Item>, SplitError> {
    let text = std::str::from_utf8(answer)?;
    let Some(root) = documents(text)?
        .into_iter()
        .find_map(|document| document.root)
    else {
        return Ok(Vec::new());
    };
    let Some((key, items)) = root
        .entries()
        .iter()
        .find(|(key, _)| key.as_str() == Some("items"))
    else {
        return Ok(Vec::new());
    };
    // Resolving is for the few answers that share a value between items.
    let mut resolved: Option<Option<Node>> = None;
    let mut previous = key.end;
    let mut cut = Vec::with_capacity(items.items().len());
    for (position, node) in items.items().iter().enumerate() {
        if node.entries().is_empty() {
            return Err(SplitError::NotAResource(position));
        }
        let own = item_text(text, previous, node);
        previous = node.end;
        let item = match single(&own) {
            Ok(root) => Item { text: own, root },
            Err(_) => {
                let tree = resolved.get_or_insert_with(|| resolve(&root));
                let node = tree
                    .as_ref()
                    .and_then(|root| root.get("items"))
                    .and_then(|items| items.items().get(position))
                    .ok_or(SplitError::Alias(position))?;
                let text = Renderer::new(text).document(node);
                let root = single(&text).map_err(|_| SplitError::Alias(position))?;
                Item {
                    text: text.trim_end().to_owned(),
                    root,
                }
            }
        };
        cut.push(item);
    }
    Ok(cut)
}

/// An item's text as it would stand alone, at column 0.
fn item_text(list: &str, previous: usize, node: &Node) -> String {
    let column = lines::column(list, node.start);
    if node.flow {
        return lines::dedent(&list[node.start..node.end], column);
    }
    let mut text = comments_above(list, previous, node);
    let end = lines::content_end(list, node.end);
    let body = lines::dedent(&list[node.start..end], column);
    text.push_str(body.trim_end());
    lines::like(&text, "")
}

/// The comments between an item and the one before it that are not indented like the latter.
fn comments_above(list: &str, previous: usize, node: &Node) -> String {
    let from = lines::content_end(list, previous);
    let between = list.get(from..node.start).unwrap_or_default();
    let dash = between
        .rfind('-')
        .map_or(0, |dash| lines::column(list, from + dash));
    between
        .lines()
        .filter(|line| {
            let content = line.trim_start();
            content.starts_with('#') && line.len() - content.len() <= dash
        })
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::same;

    fn texts(answer: &str) -> Vec<String> {
        split(answer.as_bytes())
            .unwrap()
            .into_iter()
            .map(|item| item.text)
            .collect()
    }

    #[test]
    fn items_are_cut_out_as_they_stand() {
        let answer = "\
kind: ResourceList
items:
# one
- a: 1 # line
  b: |
    text

    more
  # foot of one
# two
- c:
  - x
  -
    y: é
results: []
";
        assert_eq!(
            texts(answer),
            [
                "# one\na: 1 # line\nb: |\n  text\n\n  more",
                "# two\nc:\n- x\n-\n  y: é"
            ]
        );
    }

    #[test]
    fn indented_lists_and_json_are_cut_out_as_well() {
        assert_eq!(
            texts("items:\n    -   a: 1\n        b: 2\n    - c: 3\n"),
            ["a: 1\nb: 2", "c: 3"]
        );
        assert_eq!(
            texts("{\"items\": [{\"a\": [1]}, {\"b\": \"items: \"}]}"),
            ["{\"a\": [1]}", "{\"b\": \"items: \"}"]
        );
        assert_eq!(
            texts("{\n  \"items\": [\n    {\n      \"a\": 1\n    }\n  ]\n}\n"),
            ["{\n  \"a\": 1\n}"]
        );
        assert!(texts("items: []\n").is_empty());
        assert!(texts("kind: ResourceList\n").is_empty());
    }

    #[test]
    fn values_shared_between_items_are_copied() {
        let items = split(b"items:\n- a: &id001\n    x: 1\n- b: *id001\n").unwrap();
        assert!(same(&items[1].root, &single("b: {x: 1}").unwrap()));
    }

    #[test]
    fn what_is_not_a_resource_is_refused() {
        assert!(matches!(
            split(b"items:\n- text\n"),
            Err(SplitError::NotAResource(0))
        ));
        assert!(matches!(split(b"\xff"), Err(SplitError::NotText(_))));
        assert!(matches!(split(b"items: ["), Err(SplitError::Parse(_))));
    }
}
