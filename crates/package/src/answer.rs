//! Splits a function's answer into resources.

use runner_yaml::{Node, ParseError, lines, parse, parse_one, resolve, to_yaml};

/// One resource of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Text of the resource with the comments above it, without a trailing newline.
    pub(crate) text: String,
    /// Content of the resource; offsets refer to `text`.
    pub(crate) root: Node,
}

/// The reason why an answer cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The answer is not valid UTF-8.
    #[error("the function's answer is not UTF-8 text")]
    NotText(#[from] std::str::Utf8Error),
    /// The answer is not valid YAML.
    #[error("the function's answer is not YAML")]
    Parse(#[from] ParseError),
    /// An item has aliases that refer to nothing, or that expand to too many values.
    #[error("item {0} of the function's answer has aliases that cannot be resolved")]
    Alias(usize),
    /// An item is not a mapping, or is an empty one.
    #[error("item {0} of the function's answer is not a resource")]
    NotAResource(usize),
}

/// Returns the resources of an answer, in order.
///
/// The answer is handled as text: each item keeps its own text and the comments above it.
pub(crate) fn split(answer: &[u8]) -> Result<Vec<Item>, AnswerError> {
    let text = std::str::from_utf8(answer)?;
    let Some(root) = parse(text)?.into_iter().next() else {
        return Ok(Vec::new());
    };
    let Some((key, items)) = root
        .entries()
        .iter()
        .find(|(key, _)| key.as_str() == Some("items"))
    else {
        return Ok(Vec::new());
    };
    // Aliases are resolved only for the few answers that share a value between items.
    let mut resolved: Option<Option<Node>> = None;
    let mut previous = key.end;
    let mut cut = Vec::with_capacity(items.items().len());
    for (position, node) in items.items().iter().enumerate() {
        if node.entries().is_empty() {
            return Err(AnswerError::NotAResource(position));
        }
        let own = item_text(text, previous, node);
        previous = node.end;
        let item = match parse_one(&own) {
            Ok(root) => Item { text: own, root },
            Err(_) => {
                let tree = resolved.get_or_insert_with(|| resolve(&root));
                let node = tree
                    .as_ref()
                    .and_then(|root| root.get("items"))
                    .and_then(|items| items.items().get(position))
                    .ok_or(AnswerError::Alias(position))?;
                let text = to_yaml(node, text);
                let root = parse_one(&text).map_err(|_| AnswerError::Alias(position))?;
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

/// Returns an item's text as a document of its own, starting at column 0.
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

/// Returns the comments above an item, without those indented past its dash: they belong to the
/// previous item.
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
    use runner_yaml::same;

    fn texts(answer: &str) -> Vec<String> {
        split(answer.as_bytes())
            .unwrap()
            .into_iter()
            .map(|item| item.text)
            .collect()
    }

    #[test]
    fn splits_items_and_keeps_their_text() {
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
    fn splits_indented_lists_and_json() {
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
    fn copies_values_shared_between_items() {
        let items = split(b"items:\n- a: &id001\n    x: 1\n- b: *id001\n").unwrap();
        assert!(same(&items[1].root, &parse_one("b: {x: 1}").unwrap()));
    }

    #[test]
    fn rejects_an_answer_without_resources() {
        assert!(matches!(
            split(b"items:\n- text\n"),
            Err(AnswerError::NotAResource(0))
        ));
        assert!(matches!(split(b"\xff"), Err(AnswerError::NotText(_))));
        assert!(matches!(split(b"items: ["), Err(AnswerError::Parse(_))));
    }
}
