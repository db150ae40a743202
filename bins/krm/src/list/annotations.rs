//! Annotations that record the file and index of a resource in the package.
//!
//! They are added to every resource that is sent and removed from every resource that is returned.

use crate::{
    package::{Document, PackagePath},
    patch::patch,
    yaml::{Node, Value, render::Renderer},
};

const PATH: &str = "internal.config.kubernetes.io/path";
const INDEX: &str = "internal.config.kubernetes.io/index";
const OLD_PATH: &str = "config.kubernetes.io/path";
const OLD_INDEX: &str = "config.kubernetes.io/index";
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

/// The file and index recorded in a resource's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Path of the file in the package, not validated.
    pub path: Option<String>,
    /// Index of the document in the file.
    pub index: Option<usize>,
}

/// Returns the document's text with annotations for `path` and `index`.
#[must_use]
pub fn annotate(document: &Document, root: &Node, path: &PackagePath, index: usize) -> String {
    let index = index.to_string();
    let values = [
        (PATH, path.as_str()),
        (INDEX, &index),
        (OLD_PATH, path.as_str()),
        (OLD_INDEX, &index),
    ];
    let mut target = without_place(root, None);
    let entries = entries_at(&mut target, &ANNOTATIONS);
    entries.extend(values.map(|(key, value)| (plain(key), Node::text(value))));
    patch(&document.text, root, &target, &document.text).unwrap_or_else(|| {
        // The function gets the content without its comments; the file still keeps them.
        Renderer::new(&document.text)
            .document(&target)
            .trim_end()
            .to_owned()
    })
}

/// Returns the place of a resource that a function returned.
///
/// Functions of different generations change different annotations. If the two pairs differ, the
/// pair that differs from the sent one is used.
#[must_use]
pub fn place(root: &Node, was_sent: impl Fn(&Place) -> bool) -> Place {
    let read = |path, index| {
        let value = |key| {
            root.at(&ANNOTATIONS)
                .and_then(|node| node.get(key))
                .and_then(Node::as_str)
        };
        Place {
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
#[must_use]
pub fn without_place(root: &Node, original: Option<&Node>) -> Node {
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
            annotations.retain(|(key, _)| !key.as_str().is_some_and(is_place));
            let own = original
                .and_then(|root| root.at(&ANNOTATIONS))
                .map_or(&[][..], Node::entries);
            annotations.extend(
                own.iter()
                    .filter(|(key, _)| key.as_str().is_some_and(is_place))
                    .cloned(),
            );
        }
        if original.and_then(|root| root.at(&ANNOTATIONS)).is_none() {
            fields.retain(|(key, value)| key.as_str() != Some("annotations") || !is_void(value));
        }
    }
    if original.and_then(|root| root.get("metadata")).is_none() {
        entries.retain(|(key, value)| key.as_str() != Some("metadata") || !is_void(value));
    }
    root
}

fn is_place(key: &str) -> bool {
    key == OLD_PATH
        || key == OLD_INDEX
        || key.starts_with("internal.config.kubernetes.io/")
        || key.starts_with("internal.config.k8s.io/")
}

fn is_void(node: &Node) -> bool {
    node.is_empty_collection() || node.is_absent()
}

/// Returns the entries of the mapping at a path, which is created if missing.
fn entries_at<'n>(node: &'n mut Node, path: &[&str]) -> &'n mut Vec<(Node, Node)> {
    if !matches!(node.value, Value::Mapping(_)) {
        *node = Node::mapping(Vec::new());
    }
    let Value::Mapping(entries) = &mut node.value else {
        unreachable!("made a mapping above")
    };
    let Some((first, rest)) = path.split_first() else {
        return entries;
    };
    let known = entries
        .iter()
        .position(|(key, _)| key.as_str() == Some(*first));
    let position = known.unwrap_or_else(|| {
        // `metadata` is inserted after `kind`; other keys are appended.
        let kind = entries
            .iter()
            .position(|(key, _)| key.as_str() == Some("kind"));
        let at = kind.map_or(entries.len(), |kind| kind + 1);
        entries.insert(at, (plain(first), Node::mapping(Vec::new())));
        at
    });
    entries_at(&mut entries[position].1, rest)
}

fn plain(key: &str) -> Node {
    Node::text(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{same, single};
    use rstest::rstest;

    fn annotated(text: &str) -> String {
        let document = Document::split(text).unwrap().remove(0);
        let root = document.root.clone().unwrap();
        annotate(
            &document,
            &root,
            &PackagePath::parse("a/b.yaml").unwrap(),
            3,
        )
    }

    #[test]
    fn annotates_a_resource_and_keeps_its_text() {
        let text =
            "# about\nkind: X  # kind\nmetadata: # kpt-merge: /x\n  name: 'x'\n\nspec: yes\n";
        insta::assert_snapshot!(annotated(text), @r#"
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
    #[case::anchored("kind: X\nmetadata: &m\n  name: x\nspec: *m\n")]
    #[case::own_annotation(
        "kind: X\nmetadata:\n  annotations:\n    config.kubernetes.io/path: mine\n"
    )]
    fn reads_and_removes_the_annotations(#[case] text: &str) {
        let original = single(text).unwrap();
        let sent = single(&annotated(text)).unwrap();
        let expected = Place {
            path: Some("a/b.yaml".to_owned()),
            index: Some(3),
        };
        assert_eq!(place(&sent, |_| true), expected);
        let back = without_place(&sent, Some(&original));
        assert!(
            same(&without_place(&back, None), &without_place(&original, None)),
            "{text}"
        );
    }

    #[test]
    fn prefers_the_annotation_that_was_changed() {
        let root = |new: &str, old: &str| {
            single(&format!(
                "metadata:\n  annotations:\n    {PATH}: {new}\n    {OLD_PATH}: {old}\n"
            ))
            .unwrap()
        };
        let was_sent = |place: &Place| place.path.as_deref() == Some("sent");
        assert_eq!(
            place(&root("sent", "moved"), was_sent).path.unwrap(),
            "moved"
        );
        assert_eq!(
            place(&root("moved", "sent"), was_sent).path.unwrap(),
            "moved"
        );
    }
}
