//! Tag constraints: the semver ranges with which a client selects among an image's tags.

/// Selects among an image's tags: a semver range or an exact tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagConstraint {
    text: String,
}

/// Why a tag constraint is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed tag constraint {text:?}: {why}")]
pub struct BadTag {
    text: String,
    why: String,
}

// === impl TagConstraint ===

impl TagConstraint {
    /// Parses a constraint; an empty one is an error: the caller treats it as none.
    pub fn parse(text: &str) -> Result<Self, BadTag> {
        if text.trim().is_empty() {
            return Err(BadTag { text: text.to_owned(), why: "it is empty".to_owned() });
        }
        Ok(Self { text: text.trim().to_owned() })
    }

    /// Whether a tag satisfies the constraint.
    #[must_use]
    pub fn matches(&self, tag: &str) -> bool {
        self.text == tag
    }

    /// The highest of the tags that satisfy the constraint.
    pub fn highest<'a>(&self, tags: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        tags.into_iter().find(|tag| self.matches(tag))
    }

    /// The constraint as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}
