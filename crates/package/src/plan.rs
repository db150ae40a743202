//! New contents of a package's files, computed from the new text of each resource.

use std::collections::{BTreeMap, BTreeSet};

use runner_yaml::{Document, lines};

use crate::{
    package::{Package, is_resource},
    path::PackagePath,
};

/// The changes that an answer makes to a package.
#[derive(Debug, Default)]
pub struct Plan {
    /// The files that change, ordered by path.
    pub edits: Vec<Edit>,
    /// Number of resources that are new.
    pub added: usize,
    /// Number of resources whose text or file changes.
    pub changed: usize,
    /// Number of resources that the answer no longer contains.
    pub removed: usize,
    /// Number of resources that stay the same.
    pub unchanged: usize,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file to change.
    pub path: PackagePath,
    /// The change of its content.
    pub change: Change,
}

/// The change of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file is new.
    Create {
        /// The content of the file.
        new: String,
        /// The first resource in the file, as `Kind/name`.
        resource: String,
    },
    /// The file gets another content.
    Replace {
        /// The content when the package was read.
        old: String,
        /// The new content.
        new: String,
    },
    /// The file is removed.
    Remove {
        /// The content when the package was read.
        old: String,
    },
}

/// The file and the text of one resource after a function ran.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The file that the resource is written to.
    pub(crate) path: PackagePath,
    /// Index of the document to replace in the file; `None` to append the resource.
    pub(crate) replaces: Option<usize>,
    /// The text, without a trailing newline; `None` to keep the current text.
    pub(crate) text: Option<String>,
    /// The resource as `Kind/name`, for messages.
    pub(crate) resource: String,
}

// === impl Edit ===

impl Edit {
    /// Returns the content when the package was read, or `None` if the file is new.
    #[must_use]
    pub fn old(&self) -> Option<&str> {
        match &self.change {
            Change::Create { .. } => None,
            Change::Replace { old, .. } | Change::Remove { old } => Some(old),
        }
    }

    /// Returns the new content, or `None` if the file is removed.
    #[must_use]
    pub fn new_content(&self) -> Option<&str> {
        match &self.change {
            Change::Create { new, .. } | Change::Replace { new, .. } => Some(new),
            Change::Remove { .. } => None,
        }
    }
}

/// Distributes the targets to files and returns the files that change.
///
/// A resource of the package that no target replaces is removed.
pub(crate) fn edits(package: &Package, targets: &[Target]) -> Vec<Edit> {
    let mut paths: BTreeSet<&PackagePath> =
        package.files().iter().map(|file| file.path()).collect();
    paths.extend(targets.iter().map(|target| &target.path));
    let mut by_path: BTreeMap<&PackagePath, Vec<&Target>> = BTreeMap::new();
    for target in targets {
        by_path.entry(&target.path).or_default().push(target);
    }
    let edits = paths.into_iter().filter_map(|path| {
        let file = package.file(path);
        let documents = file.map_or(&[][..], |file| file.documents());
        let targets = by_path.get(path).map_or(&[][..], Vec::as_slice);
        let old = file.map(|file| file.text().to_owned());
        let change = match (old, assemble(documents, targets)) {
            (Some(old), Some(new)) if old == new => return None,
            (Some(old), Some(new)) => Change::Replace { old, new },
            (Some(old), None) => Change::Remove { old },
            (None, Some(new)) => Change::Create {
                new,
                resource: targets.first()?.resource.clone(),
            },
            (None, None) => return None,
        };
        Some(Edit {
            path: path.clone(),
            change,
        })
    });
    edits.collect()
}

/// Returns the content of a file, or `None` if no document with content is left.
fn assemble(documents: &[Document], targets: &[&Target]) -> Option<String> {
    let model = documents.first().map_or("", Document::tail);
    let mut text = String::new();
    let mut has_content = false;
    for (index, document) in documents.iter().enumerate() {
        if !is_resource(document) {
            has_content |= document.root().is_some();
            text.push_str(&document.to_string());
            continue;
        }
        let Some(target) = targets.iter().find(|target| target.replaces == Some(index)) else {
            continue;
        };
        has_content = true;
        // A file that did not begin with `---` must not begin with one after its first resource was
        // removed.
        let lead = if text.is_empty() && index > 0 && !documents[0].lead().starts_with("---") {
            document
                .lead()
                .strip_prefix("---")
                .map_or(document.lead(), str::trim_start)
        } else {
            document.lead()
        };
        text.push_str(lead);
        match &target.text {
            None => text.push_str(document.text()),
            // An edited text has its author's line endings, which may be mixed.
            Some(new) if new.contains("\r\n") => text.push_str(new),
            Some(new) => text.push_str(&lines::like(new, &document.to_string())),
        }
        text.push_str(document.tail());
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
        let path = PackagePath::parse("a.yaml").unwrap();
        let file = File::parse(path, text.to_owned()).unwrap();
        Package::new(vec![file], Vec::new())
    }

    fn target(path: &str, replaces: Option<usize>, text: Option<&str>) -> Target {
        let path = PackagePath::parse(path).unwrap();
        Target {
            path,
            replaces,
            text: text.map(str::to_owned),
            resource: "A/x".to_owned(),
        }
    }

    fn planned(text: &str, targets: &[Target]) -> Vec<(String, Option<String>)> {
        edits(&package(text), targets)
            .iter()
            .map(|edit| {
                let new = edit.new_content().map(str::to_owned);
                (edit.path.to_string(), new)
            })
            .collect()
    }

    #[test]
    fn plans_no_edit_for_unchanged_resources() {
        let targets = [
            target("a.yaml", Some(0), None),
            target("a.yaml", Some(2), None),
        ];
        assert!(planned(FILE, &targets).is_empty());
    }

    #[test]
    fn replaces_the_text_of_a_changed_resource() {
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
    fn keeps_the_other_resources_of_a_file() {
        let expected = "values: 1\n---\nkind: B\napiVersion: v1\n";
        let edits = planned(FILE, &[target("a.yaml", Some(2), None)]);
        assert_eq!(
            edits[0].1.as_deref().unwrap().trim_start_matches("---\n"),
            expected
        );
    }

    #[test]
    fn removes_a_file_without_content() {
        let file = "# licence\n---\nkind: A\napiVersion: v1\n";
        assert_eq!(planned(file, &[]), [("a.yaml".to_owned(), None)]);
    }

    #[test]
    fn appends_new_resources() {
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
