//! Builds ResourceLists, the input of functions, from existing texts.

use runner_yaml::{Node, ParseError, Value, lines, parse_one, patch, quoted};

use crate::{annotations::annotate, package::Package};

const HEADER: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:";

// === impl Package ===

impl Package {
    /// Returns the package as a ResourceList, each resource annotated with its file and index.
    ///
    /// `function_config` is the text of one resource, without `---`. All texts are patched and not
    /// rendered, so comments, quotes and scalars that YAML 1.1 and 1.2 read differently reach the
    /// function as they were written.
    #[must_use]
    pub fn to_resource_list(&self, function_config: Option<&str>) -> String {
        let mut list = HEADER.to_owned();
        let mut is_empty = true;
        for resource in self.resources() {
            push_item(&mut list, &lines::like(&annotate(&resource), ""));
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
}

/// Returns a ConfigMap with the `key=value` pairs as its data.
#[must_use]
pub fn config_map(pairs: &[(String, String)]) -> String {
    let mut text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\ndata:\n".to_owned();
    for (key, value) in pairs {
        text.push_str(&format!("  {}: {}\n", quoted(key), quoted(value)));
    }
    text
}

/// Returns an existing ResourceList with its function configuration replaced.
///
/// # Errors
/// Returns an error if either text is not a single document.
pub fn with_function_config(list: &str, config: &str) -> Result<String, ParseError> {
    let root = parse_one(list)?;
    let mut target = root.clone();
    if let Value::Mapping(entries) = &mut target.value {
        entries.retain(|(key, _)| key.as_str() != Some("functionConfig"));
    }
    let bare = patch(list, &root, &target, list);
    let (bare, root) = match bare.as_deref().map(parse_one) {
        Some(Ok(root)) => (bare.unwrap_or_default(), root),
        _ => (list.to_owned(), root),
    };
    let mut target = root.clone();
    // Offsets in the added value refer to `config`. Offsets in the rest are not used, because only
    // new values are rendered.
    if let Value::Mapping(entries) = &mut target.value {
        entries.push((Node::text("functionConfig"), parse_one(config)?));
    }
    Ok(patch(&bare, &root, &target, config).unwrap_or(bare))
}

/// Appends one resource as a list item, with the comments above it placed above the dash.
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

    #[test]
    fn renders_keys_and_values_as_strings() {
        let pairs = [
            ("on".to_owned(), "yes".to_owned()),
            ("a b".to_owned(), "\"x\": 1".to_owned()),
        ];
        let root = parse_one(&config_map(&pairs)).unwrap();
        assert_eq!(root.at(&["data", "on"]).and_then(Node::as_str), Some("yes"));
        assert_eq!(
            root.at(&["data", "a b"]).and_then(Node::as_str),
            Some("\"x\": 1")
        );
    }

    #[test]
    fn replaces_the_function_configuration() {
        let list = "kind: ResourceList\nitems:\n- a: 1 # kept\nfunctionConfig:\n  data: {x: old}\n";
        let result = with_function_config(list, "data:\n  x: new\n").unwrap();
        assert_eq!(
            result,
            "kind: ResourceList\nitems:\n- a: 1 # kept\nfunctionConfig:\n  data:\n    x: new\n"
        );
    }
}
