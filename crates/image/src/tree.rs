//! The files of a layer, before they are packed.

use std::collections::{BTreeMap, btree_map::Entry};

use bytes::Bytes;

const DIRECTORY_MODE: u32 = 0o755;

/// A tree of files by path.
///
/// Adding a file also adds its missing parent directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) modified: u64,
}

/// A file, directory or symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Directory,
    File(Bytes),
    Symlink(String),
}

/// A path that cannot be in a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// The path is empty, or has empty, `.` or `..` parts.
    #[error("path {0:?} must consist of names between single slashes")]
    Invalid(String),
    /// The tree already has a node at this path, or a parent of the path is not a directory.
    #[error("path {0:?} is used twice")]
    AlreadyUsed(String),
}

// === impl Tree ===

impl Tree {
    /// Returns an empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the modification time of all nodes, in seconds since 1970; the default is 0.
    #[must_use]
    pub fn modified(mut self, seconds: u64) -> Self {
        self.modified = seconds;
        self
    }

    /// Adds a directory; `owner` is the id of both user and group.
    pub fn directory(self, path: &str, mode: u32, owner: u32) -> Result<Self, BadPath> {
        self.add(
            path,
            Node {
                content: Content::Directory,
                mode,
                owner,
            },
        )
    }

    /// Adds a file owned by root.
    pub fn file(self, path: &str, mode: u32, bytes: impl Into<Bytes>) -> Result<Self, BadPath> {
        self.add(
            path,
            Node {
                content: Content::File(bytes.into()),
                mode,
                owner: 0,
            },
        )
    }

    /// Adds a symbolic link owned by root.
    pub fn symlink(self, path: &str, target: &str) -> Result<Self, BadPath> {
        let content = Content::Symlink(target.to_owned());
        self.add(
            path,
            Node {
                content,
                mode: 0o777,
                owner: 0,
            },
        )
    }

    fn add(mut self, path: &str, node: Node) -> Result<Self, BadPath> {
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(BadPath::Invalid(path.to_owned()));
        }
        for (slash, _) in path.match_indices('/') {
            let parent = &path[..slash];
            let existing = self.nodes.entry(parent.to_owned()).or_insert_with(|| Node {
                content: Content::Directory,
                mode: DIRECTORY_MODE,
                owner: 0,
            });
            if existing.content != Content::Directory {
                return Err(BadPath::AlreadyUsed(parent.to_owned()));
            }
        }
        match self.nodes.entry(path.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(node);
                Ok(self)
            }
            Entry::Occupied(_) => Err(BadPath::AlreadyUsed(path.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_missing_parent_directories() {
        let tree = Tree::new().file("/a/b/c", 0o755, "x").unwrap();
        assert_eq!(tree.nodes.keys().collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
    }

    #[test]
    fn rejects_a_path_that_is_used() {
        let tree = Tree::new().file("a", 0o644, "x").unwrap();
        assert_eq!(
            tree.clone().file("a", 0o644, "y"),
            Err(BadPath::AlreadyUsed("a".to_owned()))
        );
        assert_eq!(
            tree.file("a/b", 0o644, "y"),
            Err(BadPath::AlreadyUsed("a".to_owned()))
        );
    }

    #[test]
    fn rejects_a_path_that_leaves_the_tree() {
        for path in ["", "/", "../x", "a/../b", "a//b", "./a"] {
            let rejected = Tree::new().file(path, 0o644, "x");
            assert!(matches!(rejected, Err(BadPath::Invalid(_))), "{path}");
        }
    }
}
