//! New contents of a package's files, computed from the new text of each resource.

use std::collections::{BTreeMap, BTreeSet};

use super::{Document, Package, PackagePath};
use crate::yaml::lines;

/// The file and the text of one resource after a function ran.
#[derive(Clone, Debug)]
pub struct Target {
    /// The file that the resource is written to.
    pub path: PackagePath,
    /// Index of the document to replace in the file; `None` to append the resource.
    pub replaces: Option<usize>,
    /// The text, without a trailing newline; `None` to keep the current text.
    pub text: Option<String>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file to change.
    pub path: PackagePath,
    /// The content when the package was read; `None` if the file is new.
    pub old: Option<String>,
    /// The new content; `None` if the file is removed.
    pub new: Option<String>,
}

/// The files that change, ordered by path.
#[derive(Debug, Default)]
pub struct Plan {
    pub edits: Vec<Edit>,
}

// === impl Plan ===

impl Plan {
    /// Distributes the targets to files.
    ///
    /// A resource of the package that no target replaces is removed.
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

/// Returns the content of a file, or `None` if no document with content is left.
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
        // A file that did not begin with `---` must not begin with one after its first resource was
        // removed.
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
