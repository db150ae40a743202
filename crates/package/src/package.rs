//! The files of a package and the resources in them, without access to the disk.

use std::path::{Path, PathBuf};

use runner_yaml::{Document, Node, ParseError};

use crate::path::PackagePath;

/// The resource files of a directory, ordered by path.
#[derive(Debug, Default)]
pub struct Package {
    files: Vec<File>,
    links: Vec<PathBuf>,
}

/// A resource file as it was read.
#[derive(Debug)]
pub struct File {
    path: PackagePath,
    text: String,
    documents: Vec<Document>,
}

/// A resource of a package.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The file that holds the resource.
    pub file: &'a File,
    /// Index of the document in the file.
    pub index: usize,
    /// The document that holds the resource.
    pub document: &'a Document,
    /// The content of the document.
    pub root: &'a Node,
}

// === impl Package ===

impl Package {
    /// Returns a package of these files, and of symbolic links that are not followed.
    #[must_use]
    pub fn new(mut files: Vec<File>, mut links: Vec<PathBuf>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        links.sort();
        Self { files, links }
    }

    /// Returns the files, ordered by path.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the paths on disk of the symbolic links to resource files, which were skipped.
    pub fn links(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().map(PathBuf::as_path)
    }

    /// Returns the resources, ordered by file and index.
    pub fn resources(&self) -> impl Iterator<Item = Resource<'_>> {
        self.files.iter().flat_map(|file| {
            let documents = file.documents.iter().enumerate();
            documents.filter_map(move |(index, document)| {
                Some(Resource {
                    file,
                    index,
                    document,
                    root: document.root().filter(|root| has_type(root))?,
                })
            })
        })
    }

    /// Returns the file at a path, if the package has it.
    #[must_use]
    pub fn file(&self, path: &PackagePath) -> Option<&File> {
        let position = self.files.binary_search_by(|file| file.path.cmp(path));
        position.ok().map(|position| &self.files[position])
    }
}

// === impl File ===

impl File {
    /// Parses the content of a file.
    ///
    /// # Errors
    /// Returns an error if the content is not YAML.
    pub fn parse(path: PackagePath, text: String) -> Result<Self, ParseError> {
        let documents = Document::split(&text)?;
        Ok(Self {
            path,
            text,
            documents,
        })
    }

    /// Returns the path of the file in the package.
    #[must_use]
    pub fn path(&self) -> &PackagePath {
        &self.path
    }

    /// Returns the whole content.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the content, split into documents.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }
}

/// Returns whether a document is a Kubernetes-style resource, with `apiVersion` and `kind`.
#[must_use]
pub fn is_resource(document: &Document) -> bool {
    document.root().is_some_and(has_type)
}

fn has_type(root: &Node) -> bool {
    ["apiVersion", "kind"].into_iter().all(|key| {
        root.get(key)
            .and_then(Node::as_str)
            .is_some_and(|text| !text.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_resources_from_other_documents() {
        let file = "apiVersion: v1\nkind: ConfigMap\n---\nname: values\n---\n";
        let documents = Document::split(file).unwrap();
        let resources: Vec<_> = documents.iter().map(is_resource).collect();
        assert_eq!(resources, [true, false, false]);
    }
}
