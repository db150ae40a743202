//! The path of a file inside a package.

use std::{fmt, path::Path};

/// A relative path that stays inside the package, with `/` as separator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackagePath(String);

/// The error for a path that leaves the package or names no file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("path {0:?} does not stay inside the package")]
pub struct BadPath(String);

// === impl PackagePath ===

impl PackagePath {
    /// Validates a path from an untrusted source.
    ///
    /// # Errors
    /// Returns an error if the path is empty, absolute, ends in `/`, or contains `..`, `.git`, a
    /// backslash or a control character.
    pub fn parse(path: &str) -> Result<Self, BadPath> {
        let bad = || BadPath(path.to_owned());
        if path.starts_with('/') || path.chars().any(|c| c.is_control() || c == '\\') {
            return Err(bad());
        }
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." | ".git" => return Err(bad()),
                part => parts.push(part),
            }
        }
        if parts.is_empty() || path.ends_with('/') {
            return Err(bad());
        }
        Ok(Self(parts.join("/")))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the file's extension is `.json`.
    #[must_use]
    pub fn is_json(&self) -> bool {
        Path::new(&self.0)
            .extension()
            .is_some_and(|extension| extension == "json")
    }

    /// Returns whether files of this name are read as resource files: `*.yaml`, `*.yml`, `*.json`
    /// and `Kptfile`.
    #[must_use]
    pub fn is_resource_file(&self) -> bool {
        is_resource_file(Path::new(&self.0))
    }
}

impl fmt::Display for PackagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether files of this name are read as resource files.
pub(crate) fn is_resource_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "Kptfile")
        || path.extension().is_some_and(|extension| {
            ["yaml", "yml", "json"]
                .iter()
                .any(|known| extension == *known)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_paths_that_leave_the_package() {
        assert_eq!(
            PackagePath::parse("a/./b.yaml").unwrap().as_str(),
            "a/b.yaml"
        );
        for bad in [
            "",
            ".",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/",
            "a\\b",
            "a\nb",
            ".git/hooks/x",
        ] {
            assert!(PackagePath::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn recognizes_resource_files_by_their_extension() {
        let is_resource_file = |path| PackagePath::parse(path).unwrap().is_resource_file();
        for path in ["a.yaml", "b/a.yml", "a.b.json", "Kptfile", "b/Kptfile"] {
            assert!(is_resource_file(path), "{path}");
        }
        for path in [
            "yaml",
            "b/yml",
            ".json",
            "a.yaml.bak",
            "x.Kptfile",
            "run.sh",
        ] {
            assert!(!is_resource_file(path), "{path}");
        }
    }
}
