//! Tag constraints: the semver ranges with which a client selects among an image's tags.
//!
//! ```text
//! constraint  = alternative { "||" alternative }
//! alternative = tag | range { ( " " | "," ) range }
//! range       = [ operator ] version | version " - " version
//! operator    = "=" "!=" ">" ">=" "<" "<=" "~" "^"
//! ```
//!
//! A version may leave parts out (`0.4`) or write `x` or `*` for them, and may start with `v`. The
//! rules are those of the library that Porch uses, Masterminds/semver v3: a tag such as `v0.4` is
//! version 0.4.0, and a pre-release satisfies only a constraint that names a pre-release.

use semver::Version;

mod list;
mod parse;
mod range;

pub use list::{Selection, TagList};
use range::{Partial, Range};

/// A constraint that selects among an image's tags: semver ranges or an exact tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TagConstraint {
    text: String,
    alternatives: Vec<Alternative>,
}

/// An error that names the malformed part of a tag constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed tag constraint {text:?}: {why}")]
pub struct BadTag {
    text: String,
    why: String,
}

/// One side of a `||`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Alternative {
    /// The tag of the same text, if the alternative is a single word, even one that is a version.
    name: Option<String>,
    /// Ranges that a version must all satisfy; empty if the name is not a version.
    ranges: Vec<Range>,
}

// === impl TagConstraint ===

impl TagConstraint {
    /// Parses a constraint.
    ///
    /// # Errors
    /// If the constraint is malformed or empty; callers treat an empty text as no constraint.
    pub fn parse(text: &str) -> Result<Self, BadTag> {
        let text = text.trim();
        let bad = |why| BadTag {
            text: text.to_owned(),
            why,
        };
        Ok(Self {
            text: text.to_owned(),
            alternatives: parse::alternatives(text).map_err(bad)?,
        })
    }

    /// Returns whether a tag satisfies the constraint.
    #[must_use]
    pub fn matches(&self, tag: &str) -> bool {
        self.names(tag) || version(tag).is_some_and(|version| self.admits(&version))
    }

    /// Returns the highest of the tags that satisfy the constraint.
    ///
    /// A tag that an exact constraint names has priority over all others. Full versions have
    /// priority over shortened ones (`v0.4`, which usually move), and versions over other names.
    /// `v1.0.0` and `1.0.0` are the same version: the tag with the `v` is selected, regardless of
    /// their order.
    pub fn highest<'a>(&self, tags: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let mut named: Option<&str> = None;
        let mut highest: Option<(bool, Version, &str)> = None;
        for tag in tags {
            if self.exact() == Some(tag) {
                return Some(tag);
            }
            if let Some(version) = version(tag).filter(|version| self.admits(version)) {
                let candidate = (is_full(tag), version, tag);
                if highest.as_ref().is_none_or(|best| *best < candidate) {
                    highest = Some(candidate);
                }
            } else if self.names(tag) && named.is_none_or(|best| tag < best) {
                named = Some(tag);
            }
        }
        highest.map(|(_, _, tag)| tag).or(named)
    }

    /// Returns the tag that the whole constraint names, if it is a single word.
    ///
    /// A registry can then be asked for this tag alone instead of the list of all tags.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match self.alternatives.as_slice() {
            [only] => only.name.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the constraint may select a tag other than the one it names.
    #[must_use]
    pub fn is_range(&self) -> bool {
        self.alternatives.len() > 1 || self.alternatives.iter().any(|one| !one.ranges.is_empty())
    }

    /// Returns whether every alternative is a range or version, and none is only a tag name.
    #[must_use]
    pub fn is_semver(&self) -> bool {
        self.alternatives.iter().all(|one| !one.ranges.is_empty())
    }

    /// Returns the constraint as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn names(&self, tag: &str) -> bool {
        self.alternatives
            .iter()
            .any(|one| one.name.as_deref() == Some(tag))
    }

    fn admits(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|one| one.admits(version))
    }
}

impl std::fmt::Display for TagConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl Alternative ===

impl Alternative {
    fn admits(&self, version: &Version) -> bool {
        let asked_for = version.pre.is_empty() || self.ranges.iter().any(Range::names_pre_release);
        asked_for && !self.ranges.is_empty() && self.ranges.iter().all(|one| one.contains(version))
    }
}

/// Returns the version that a tag spells, with or without a `v`; missing parts are 0.
fn version(tag: &str) -> Option<Version> {
    let version = Partial::parse(tag).ok()?;
    (!version.has_wildcard()).then(|| version.lowest())
}

/// Returns whether a tag spells a version with major, minor and patch.
fn is_full(tag: &str) -> bool {
    Partial::parse(tag).is_ok_and(|version| version.is_full())
}

#[cfg(test)]
mod tests;
