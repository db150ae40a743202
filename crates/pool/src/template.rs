//! Which template a pod was made from.

use std::{fmt, sync::Arc};

const FINGERPRINT_DIGITS: usize = 16;

/// The value of the `template-version` annotation: the template's resource version and, where a
/// function overrides parts of it, a fingerprint of what it overrides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateVersion {
    base: Arc<str>,
    overrides: u64,
}

// === impl TemplateVersion ===

impl TemplateVersion {
    /// The template at that resource version with these overrides; 0: none.
    #[must_use]
    pub fn new(base: Arc<str>, overrides: u64) -> Self {
        Self { base, overrides }
    }

    /// Reads an annotation, whoever wrote it.
    #[must_use]
    pub fn parse(annotation: &str) -> Self {
        if let Some((base, digits)) = annotation.rsplit_once('-')
            && digits.len() == FINGERPRINT_DIGITS
            && let Ok(overrides) = u64::from_str_radix(digits, 16)
        {
            return Self {
                base: base.into(),
                overrides,
            };
        }
        Self {
            base: annotation.into(),
            overrides: 0,
        }
    }

    /// Whether this is known to come before `other`.
    ///
    /// Resource versions compare as numbers. Where one is no number nothing is known: the pod may
    /// be another replica's that saw a newer template first, and is left to its TTL.
    #[must_use]
    pub fn is_older_than(&self, other: &Self) -> bool {
        match (self.base.parse::<u64>(), other.base.parse::<u64>()) {
            (Ok(this), Ok(other)) => this < other,
            _ => false,
        }
    }
}

impl fmt::Display for TemplateVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        if self.overrides != 0 {
            write!(f, "-{:0FINGERPRINT_DIGITS$x}", self.overrides)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_read_back() {
        for version in [
            TemplateVersion::new("17".into(), 0),
            TemplateVersion::new("17".into(), 9),
        ] {
            assert_eq!(TemplateVersion::parse(&version.to_string()), version);
        }
    }

    #[test]
    fn only_numbers_are_known_to_be_older() {
        let version = TemplateVersion::parse;
        assert!(version("9").is_older_than(&version("10")));
        assert!(!version("10").is_older_than(&version("9")));
        assert!(!version("builtin").is_older_than(&version("9")));
        assert!(!version("9").is_older_than(&version("9-00000000000000ff")));
    }
}
