//! What a package's files become when each resource has its new text.

use std::collections::{BTreeMap, BTreeSet};

use super::{Document, Package, PackagePath};
use crate::yaml::lines;

/// Which file a resource goes to, and what its text is there.
#[derive(Clone, Debug)]
pub struct Target {
    /// The file.
    pub path: PackagePath,
    /// The document of that file it takes the place of; none: it is added behind the others.
    pub replaces: Option<usize>,
    /// The text, without a last newline; none: the text that is there.
    pub text: Option<String>,
}

/// One file's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: PackagePath,
    /// Its bytes as they were read; none: it is new.
    pub old: Option<String>,
    /// Its bytes to be; none: it goes.
    pub new: Option<String>,
}

/// Every file that changes, in the order of their paths.
#[derive(Debug, Default)]
pub struct Plan {
    /// The changes.
    pub edits: Vec<Edit>,
}

// === impl Plan ===

impl Plan {
    /// Lays the targets out in files. A resource of the package that no target replaces is removed.
    #[must_use]
    pub fn new(package: &Package, targets: &[Target]) -> Self {
        let mut paths: BTreeSet<&PackagePath> =
            package.files.iter().map(|file| &file.path).collect();
        paths.extend(targets.iter().map(|target| &target.path));
        let mut by_path: BTreeMap<&PackagePath, Vec<&Target>> = BTreeMap::new();
        for target in targets {
            by_path.entry(&target.path).or_default().push(target);
        }
        let edits = paths.into_iter().filter_map(|path| {
            let file = package.file(path);
            let documents = file.map_or(&[][..], |file| &file.documents);
            let targets = by_path.get(path).map_or(&[][..], Vec::as_slice);
            let old = file.map(|file| file.text.clone());
            let new = assemble(documents, targets);
            (old != new).then(|| Edit {
                path: path.clone(),
                old,
                new,
            })
        });
        Self {
            edits: edits.collect(),
        }
    }
}

/// A file's bytes, or nothing if no document with content is left.
fn assemble(documents: &[Document], targets: &[&Target]) -> Option<String> {
    let model = documents.first().map_or("", |document| &document.tail);
    let mut text = String::new();
    let mut has_content = false;
    for (index, document) in documents.iter().enumerate() {
        if !document.is_resource() {
            has_content |= document.root.is_some();
            text.push_str(&document.join());
            continue;
        }
        let Some(target) = targets.iter().find(|target| target.replaces == Some(index)) else {
            continue;
        };
        has_content = true;
        // A file that did not begin with `---` does not begin with one because its first
        // resource went.
        let lead = if text.is_empty() && index > 0 && !documents[0].lead.starts_with("---") {
            document
                .lead
                .strip_prefix("---")
                .map_or(document.lead.as_str(), str::trim_start)
        } else {
            &document.lead
        };
        text.push_str(lead);
        match &target.text {
            None => text.push_str(&document.text),
            Some(new) => text.push_str(&lines::like(new, &document.join())),
        }
        text.push_str(&document.tail);
    }
    for target in targets.iter().filter(|target| target.replaces.is_none()) {
        let Some(new) = &target.text else { continue };
        if has_content {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&lines::like("---\n", model));
        }
        has_content = true;
        text.push_str(&lines::like(&format!("{new}\n"), model));
    }
    has_content.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::File;

    const FILE: &str =
        "# a\nkind: A\napiVersion: v1\n\n# foot\n---\nvalues: 1\n---\nkind: B\napiVersion: v1\n";

    fn package(text: &str) -> Package {
        let documents = Document::split(text).unwrap();
        let path = PackagePath::parse("a.yaml").unwrap();
        let file = File {
            path,
            text: text.to_owned(),
            documents,
        };
        Package {
            root: "".into(),
            files: vec![file],
            links: Vec::new(),
        }
    }

    fn target(path: &str, replaces: Option<usize>, text: Option<&str>) -> Target {
        let path = PackagePath::parse(path).unwrap();
        Target {
            path,
            replaces,
            text: text.map(str::to_owned),
        }
    }

    fn planned(text: &str, targets: &[Target]) -> Vec<(String, Option<String>)> {
        let plan = Plan::new(&package(text), targets);
        plan.edits
            .into_iter()
            .map(|edit| (edit.path.to_string(), edit.new))
            .collect()
    }

    #[test]
    fn untouched_resources_are_no_edit() {
        let targets = [
            target("a.yaml", Some(0), None),
            target("a.yaml", Some(2), None),
        ];
        assert!(planned(FILE, &targets).is_empty());
    }

    #[test]
    fn a_new_text_takes_the_old_ones_place() {
        let targets = [
            target("a.yaml", Some(0), Some("x: 1")),
            target("a.yaml", Some(2), None),
        ];
        let expected = FILE.replace("# a\nkind: A\napiVersion: v1", "x: 1");
        assert_eq!(
            planned(FILE, &targets),
            [("a.yaml".to_owned(), Some(expected))]
        );
    }

    #[test]
    fn a_removed_resource_leaves_the_others() {
        let expected = "values: 1\n---\nkind: B\napiVersion: v1\n";
        let edits = planned(FILE, &[target("a.yaml", Some(2), None)]);
        assert_eq!(
            edits[0].1.as_deref().unwrap().trim_start_matches("---\n"),
            expected
        );
    }

    #[test]
    fn a_file_of_nothing_is_removed() {
        let file = "# licence\n---\nkind: A\napiVersion: v1\n";
        assert_eq!(planned(file, &[]), [("a.yaml".to_owned(), None)]);
    }

    #[test]
    fn new_resources_are_added_behind_the_others() {
        let targets = [
            target("a.yaml", Some(0), None),
            target("a.yaml", None, Some("new: 1")),
            target("b.yaml", None, Some("one: 1")),
            target("b.yaml", None, Some("two: 2")),
        ];
        let edits = planned("kind: A\r\napiVersion: v1\r\n", &targets);
        assert_eq!(
            edits[0].1.as_deref(),
            Some("kind: A\r\napiVersion: v1\r\n---\r\nnew: 1\r\n")
        );
        assert_eq!(
            edits[1],
            (
                "b.yaml".to_owned(),
                Some("one: 1\n---\ntwo: 2\n".to_owned())
            )
        );
    }
}
