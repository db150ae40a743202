//! Writing a resource list around texts that already exist.

use super::annotations::annotate;
use crate::{
    package::Package,
    patch::patch,
    yaml::{Node, ParseError, Value, lines, render::json_string, single},
};

const HEADER: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:";

/// A package as a resource list, each resource with its place on it.
#[must_use]
pub fn build(package: &Package, function_config: Option<&str>) -> String {
    let mut list = HEADER.to_owned();
    let mut is_empty = true;
    for (file, index, document) in package.resources() {
        let Some(root) = &document.root else { continue };
        let text = lines::like(&annotate(document, root, &file.path, index), "");
        push_item(&mut list, &text);
        is_empty = false;
    }
    list.push_str(if is_empty { " []\n" } else { "\n" });
    if let Some(config) = function_config {
        list.push_str("functionConfig:\n");
        list.push_str(lines::indent(config, 2).trim_end());
        list.push('\n');
    }
    list
}

/// The function's configuration as `key=value` pairs make it.
#[must_use]
pub fn config_map(pairs: &[(String, String)]) -> String {
    let mut text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata:\n".to_owned();
    for (key, value) in pairs {
        text.push_str(&format!("  {}: {}\n", json_string(key), json_string(value)));
    }
    text
}

/// A list somebody else made, with its function's configuration replaced.
///
/// # Errors
/// When either text is not a single document.
pub fn with_function_config(list: &str, config: &str) -> Result<String, ParseError> {
    let root = single(list)?;
    let mut target = root.clone();
    if let Value::Mapping(entries) = &mut target.value {
        entries.retain(|(key, _)| key.as_str() != Some("functionConfig"));
    }
    let bare = patch(list, &root, &target, list);
    let (bare, root) = match bare.as_deref().map(single) {
        Some(Ok(root)) => (bare.unwrap_or_default(), root),
        _ => (list.to_owned(), root),
    };
    let mut target = root.clone();
    // Places of the added value count in the configuration, those of the rest are not looked at:
    // only what is new is printed.
    if let Value::Mapping(entries) = &mut target.value {
        entries.push((Node::text("functionConfig"), single(config)?));
    }
    Ok(patch(&bare, &root, &target, config).unwrap_or(bare))
}

/// Puts one resource behind a dash, the comments above it above the dash.
fn push_item(list: &mut String, text: &str) {
    let body = text
        .split_inclusive('\n')
        .take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        .map(str::len)
        .sum();
    let (comments, body) = text.split_at(body);
    let column = body.len() - body.trim_start_matches(' ').len();
    for line in comments
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        list.push('\n');
        list.push_str(line);
    }
    let body = lines::indent(&lines::dedent(body, column), 2);
    list.push_str("\n- ");
    list.push_str(body.get(2..).unwrap_or_default().trim_end_matches('\n'));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::single;

    #[test]
    fn pairs_are_always_text() {
        let pairs = [
            ("on".to_owned(), "yes".to_owned()),
            ("a b".to_owned(), "\"x\": 1".to_owned()),
        ];
        let root = single(&config_map(&pairs)).unwrap();
        assert_eq!(root.at(&["data", "on"]).and_then(Node::as_str), Some("yes"));
        assert_eq!(
            root.at(&["data", "a b"]).and_then(Node::as_str),
            Some("\"x\": 1")
        );
    }

    #[test]
    fn a_list_gets_a_configuration() {
        let list = "kind: ResourceList\nitems:\n- a: 1 # kept\nfunctionConfig:\n  data: {x: old}\n";
        let result = with_function_config(list, "data:\n  x: new\n").unwrap();
        assert_eq!(
            result,
            "kind: ResourceList\nitems:\n- a: 1 # kept\nfunctionConfig:\n  data:\n    x: new\n"
        );
    }
}
