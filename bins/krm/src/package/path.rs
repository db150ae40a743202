//! A file's place inside a package.

use std::{fmt, path::Path};

/// A relative path that stays inside the package, with `/` between its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackagePath(String);

/// A path that leads out of the package, or nowhere.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("path {0:?} does not stay inside the package")]
pub struct BadPath(String);

// === impl PackagePath ===

impl PackagePath {
    /// Checks a path that somebody else chose.
    ///
    /// # Errors
    /// When it is empty, absolute, has a `..`, or a character no file name should have.
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

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the file is JSON by its name.
    #[must_use]
    pub fn is_json(&self) -> bool {
        Path::new(&self.0)
            .extension()
            .is_some_and(|extension| extension == "json")
    }
}

impl fmt::Display for PackagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
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
}
