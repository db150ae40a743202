//! Annotations that record the file and index of a resource in the package.
//!
//! They are added to every resource that is sent and removed from every resource that is returned.

use runner_yaml::{Node, Value, patch, resolve, to_yaml};

use crate::package::Resource;

const PATH: &str = "internal.config.kubernetes.io/path";
const INDEX: &str = "internal.config.kubernetes.io/index";
const OLD_PATH: &str = "config.kubernetes.io/path";
const OLD_INDEX: &str = "config.kubernetes.io/index";
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

/// The file and index recorded in a resource's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Location {
    /// Path of the file in the package, not validated.
    pub(crate) path: Option<String>,
    /// Index of the document in the file.
    pub(crate) index: Option<usize>,
}

/// Returns the resource's text with annotations for its file and index.
pub(crate) fn annotate(resource: &Resource<'_>) -> String {
    let source = resource.document.text();
    let aliases_resolved = || annotated(&resolve(resource.root)?.detached(), resource);
    let Some(target) = annotated(resource.root, resource).or_else(aliases_resolved) else {
        // Such a resource has no metadata that could be annotated.
        return source.to_owned();
    };
    patch(source, resource.root, &target, source).unwrap_or_else(|| {
        // The function gets the content without its comments; the file still keeps them.
        to_yaml(&target, source).trim_end().to_owned()
    })
}

/// Returns the tree with annotations, or `None` if `metadata` or its annotations are not a mapping.
fn annotated(root: &Node, resource: &Resource<'_>) -> Option<Node> {
    let (path, index) = (resource.file.path().as_str(), resource.index.to_string());
    let mut target = without_location(root, None);
    if let Value::Mapping(entries) = &mut target.value
        && !entries
            .iter()
            .any(|(key, _)| key.as_str() == Some("metadata"))
    {
        let kind = entries
            .iter()
            .position(|(key, _)| key.as_str() == Some("kind"));
        let at = kind.map_or(entries.len(), |kind| kind + 1);
        entries.insert(at, (Node::text("metadata"), Node::mapping(Vec::new())));
    }
    let values = [
        (PATH, path),
        (INDEX, &index),
        (OLD_PATH, path),
        (OLD_INDEX, &index),
    ];
    values
        .into_iter()
        .all(|(key, value)| target.set(&["metadata", "annotations", key], value.into()))
        .then_some(target)
}

/// Returns the location of a resource that a function returned.
///
/// Functions of different generations change different annotations. If the two pairs differ, the
/// pair that differs from the sent one is used.
pub(crate) fn location(root: &Node, was_sent: impl Fn(&Location) -> bool) -> Location {
    let read = |path, index| {
        let value = |key| {
            root.at(&ANNOTATIONS)
                .and_then(|node| node.get(key))
                .and_then(Node::as_str)
        };
        Location {
            path: value(path)
                .filter(|path| !path.is_empty())
                .map(str::to_owned),
            index: value(index).and_then(|index| index.parse().ok()),
        }
    };
    let (new, old) = (read(PATH, INDEX), read(OLD_PATH, OLD_INDEX));
    if new.path.is_none() || (old.path.is_some() && old != new && was_sent(&new)) {
        old
    } else {
        new
    }
}

/// Returns the resource without these annotations and without collections that become empty.
///
/// Such annotations in the author's own file belong to the author: they are taken from `original`.
pub(crate) fn without_location(root: &Node, original: Option<&Node>) -> Node {
    let mut root = root.clone();
    let Value::Mapping(entries) = &mut root.value else {
        return root;
    };
    let Some((_, metadata)) = entries
        .iter_mut()
        .find(|(key, _)| key.as_str() == Some("metadata"))
    else {
        return root;
    };
    if let Value::Mapping(fields) = &mut metadata.value {
        if let Some((_, annotations)) = fields
            .iter_mut()
            .find(|(key, _)| key.as_str() == Some("annotations"))
            && let Value::Mapping(annotations) = &mut annotations.value
        {
            annotations.retain(|(key, _)| !key.as_str().is_some_and(is_location_key));
            let own = original
                .and_then(|root| root.at(&ANNOTATIONS))
                .map_or(&[][..], Node::entries);
            annotations.extend(
                own.iter()
                    .filter(|(key, _)| key.as_str().is_some_and(is_location_key))
                    .cloned(),
            );
        }
        if original.and_then(|root| root.at(&ANNOTATIONS)).is_none() {
            fields.retain(|(key, value)| key.as_str() != Some("annotations") || !is_empty(value));
        }
    }
    if original.and_then(|root| root.get("metadata")).is_none() {
        entries.retain(|(key, value)| key.as_str() != Some("metadata") || !is_empty(value));
    }
    root
}

/// Returns whether an annotation records a location or belongs to another tool's bookkeeping.
fn is_location_key(key: &str) -> bool {
    key == OLD_PATH
        || key == OLD_INDEX
        || key.starts_with("internal.config.kubernetes.io/")
        || key.starts_with("internal.config.k8s.io/")
}

/// Returns whether a value is null without text, or a collection without members.
fn is_empty(node: &Node) -> bool {
    node.is_empty_collection() || node.is_absent()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{package::File, path::PackagePath};
    use rstest::rstest;
    use runner_yaml::{parse_one, same};

    fn sent(text: &str) -> String {
        let path = PackagePath::parse("a/b.yaml").unwrap();
        let file = File::parse(path, text.to_owned()).unwrap();
        let document = &file.documents()[0];
        annotate(&Resource {
            file: &file,
            index: 3,
            document,
            root: document.root().unwrap(),
        })
    }

    #[test]
    fn annotates_a_resource_and_keeps_its_text() {
        let text =
            "# about\nkind: X  # kind\nmetadata: # kpt-merge: /x\n  name: 'x'\n\nspec: yes\n";
        insta::assert_snapshot!(sent(text), @r#"
        # about
        kind: X  # kind
        metadata: # kpt-merge: /x
          name: 'x'
          annotations:
            internal.config.kubernetes.io/path: a/b.yaml
            internal.config.kubernetes.io/index: "3"
            config.kubernetes.io/path: a/b.yaml
            config.kubernetes.io/index: "3"

        spec: yes
        "#);
    }

    #[rstest]
    #[case::no_metadata("kind: X\nspec: 1\n")]
    #[case::empty_metadata("kind: X\nmetadata:\nspec: 1\n")]
    #[case::annotations("kind: X\nmetadata:\n  annotations:\n    a: b # c\n  name: x\n")]
    #[case::empty_annotations("kind: X\nmetadata:\n  annotations: {}\n")]
    #[case::flow_metadata("kind: X\nmetadata: {name: x}\n")]
    #[case::json("{\"kind\": \"X\", \"metadata\": {\"name\": \"x\"}}")]
    #[case::alias("spec: &m {name: x}\nkind: X\nmetadata: *m\n")]
    #[case::anchored("kind: X\nmetadata: &m\n  name: x\nspec: *m\n")]
    #[case::own_annotation(
        "kind: X\nmetadata:\n  annotations:\n    config.kubernetes.io/path: mine\n"
    )]
    fn reads_and_removes_the_annotations(#[case] text: &str) {
        let original = parse_one(text).unwrap();
        let sent = parse_one(&sent(text)).unwrap();
        let expected = Location {
            path: Some("a/b.yaml".to_owned()),
            index: Some(3),
        };
        assert_eq!(location(&sent, |_| true), expected);
        let back = without_location(&sent, Some(&original));
        let content = |root: &Node| resolve(&without_location(root, None)).unwrap();
        assert!(same(&content(&back), &content(&original)), "{text}");
    }

    #[test]
    fn prefers_the_annotation_that_was_changed() {
        let root = |new: &str, old: &str| {
            parse_one(&format!(
                "metadata:\n  annotations:\n    {PATH}: {new}\n    {OLD_PATH}: {old}\n"
            ))
            .unwrap()
        };
        let was_sent = |location: &Location| location.path.as_deref() == Some("sent");
        assert_eq!(
            location(&root("sent", "moved"), was_sent).path.unwrap(),
            "moved"
        );
        assert_eq!(
            location(&root("moved", "sent"), was_sent).path.unwrap(),
            "moved"
        );
    }
}
