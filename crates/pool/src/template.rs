//! What pods are made from, and whether a pod is what would be made now.

use std::sync::Arc;

/// What all pods are made from, apart from what single functions override.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Template {
    /// The resource version of the pod template.
    pub version: Arc<str>,
    /// A fingerprint of the service template.
    pub service: u64,
    /// The largest message that wrappers accept, in bytes.
    pub message_limit: u64,
}

/// What one pod was made from, as far as its annotations and its arguments say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateVersion {
    version: Arc<str>,
    message_limit: u64,
    /// Missing on pods of earlier runners, which know the pod template's version alone.
    settings: Option<SettingsVersion>,
}

/// Fingerprints of what is not in the pod template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SettingsVersion {
    service: u64,
    /// What the function overrides in the pod template; 0: nothing.
    overrides: u64,
}

// === impl Template ===

impl From<&str> for Template {
    fn from(version: &str) -> Self {
        Self {
            version: version.into(),
            ..Self::default()
        }
    }
}

// === impl TemplateVersion ===

impl TemplateVersion {
    /// Returns what a pod is made from whose function overrides this much; 0: nothing.
    #[must_use]
    pub fn new(template: &Template, overrides: u64) -> Self {
        Self {
            version: Arc::clone(&template.version),
            message_limit: template.message_limit,
            settings: Some(SettingsVersion {
                service: template.service,
                overrides,
            }),
        }
    }

    /// Reads the annotations of a pod with the wrapper's message limit, whoever made the pod.
    #[must_use]
    pub fn of_pod(version: &str, settings: Option<&str>, message_limit: u64) -> Self {
        Self {
            version: version.into(),
            message_limit,
            settings: settings.and_then(SettingsVersion::parse),
        }
    }

    /// The resource version of the pod template, for the pod's annotation.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the fingerprints for the pod's other annotation; empty for pods of earlier runners.
    #[must_use]
    pub fn settings(&self) -> String {
        let text = |known: SettingsVersion| format!("{:x}-{:x}", known.service, known.overrides);
        self.settings.map(text).unwrap_or_default()
    }

    /// Returns whether a pod made from this is as good as one made from `wanted`.
    ///
    /// A pod of an earlier runner counts if the template and the wrapper's arguments are the same.
    /// Where the function overrides parts of the template it does not: nothing tells which values
    /// that pod has.
    #[must_use]
    pub fn serves_for(&self, wanted: &Self) -> bool {
        let settings = match (self.settings, wanted.settings) {
            (None, Some(wanted)) => wanted.overrides == 0,
            (known, wanted) => known == wanted,
        };
        settings && self.version == wanted.version && self.message_limit == wanted.message_limit
    }

    /// Whether this is known to come before `other`.
    ///
    /// Resource versions compare as numbers. Where one is no number nothing is known: the pod may
    /// be another replica's that saw a newer template first, and is left to its TTL.
    #[must_use]
    pub fn is_older_than(&self, other: &Self) -> bool {
        match (self.version.parse::<u64>(), other.version.parse::<u64>()) {
            (Ok(this), Ok(other)) => this < other,
            _ => false,
        }
    }
}

// === impl SettingsVersion ===

impl SettingsVersion {
    fn parse(annotation: &str) -> Option<Self> {
        let (service, overrides) = annotation.split_once('-')?;
        Some(Self {
            service: u64::from_str_radix(service, 16).ok()?,
            overrides: u64::from_str_radix(overrides, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn template() -> Template {
        Template {
            version: "17".into(),
            service: 0xabc,
            message_limit: 6,
        }
    }

    #[rstest]
    #[case(0)]
    #[case(u64::MAX)]
    fn annotations_are_read_back(#[case] overrides: u64) {
        let made = TemplateVersion::new(&template(), overrides);
        let read = TemplateVersion::of_pod(made.version(), Some(&made.settings()), 6);
        assert_eq!(read, made);
    }

    #[rstest]
    #[case::same("17", Some("abc-0"), 6, 0, true)]
    #[case::another_template("16", Some("abc-0"), 6, 0, false)]
    #[case::another_service_template("17", Some("abd-0"), 6, 0, false)]
    #[case::another_message_limit("17", Some("abc-0"), 5, 0, false)]
    #[case::other_overrides("17", Some("abc-1"), 6, 2, false)]
    #[case::earlier_runner("17", None, 6, 0, true)]
    #[case::earlier_runner_before_the_template_changed("16", None, 6, 0, false)]
    #[case::earlier_runner_with_another_limit("17", None, 5, 0, false)]
    #[case::earlier_runner_with_unknown_overrides("17", None, 6, 2, false)]
    fn a_pod_is_current_if_it_would_be_made_the_same(
        #[case] version: &str,
        #[case] settings: Option<&str>,
        #[case] limit: u64,
        #[case] overrides: u64,
        #[case] current: bool,
    ) {
        let pod = TemplateVersion::of_pod(version, settings, limit);
        let wanted = TemplateVersion::new(&template(), overrides);
        assert_eq!(pod.serves_for(&wanted), current);
    }

    #[test]
    fn only_numbers_are_known_to_be_older() {
        let version = |text| TemplateVersion::of_pod(text, None, 6);
        assert!(version("9").is_older_than(&version("10")));
        assert!(!version("10").is_older_than(&version("9")));
        assert!(!version("built-in").is_older_than(&version("9")));
        assert!(!version("9").is_older_than(&version("9")));
    }
}
