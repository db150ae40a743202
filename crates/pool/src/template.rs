//! The templates of pods, and the comparison of a pod with the current template.

use std::sync::Arc;

/// The template that all pods are made from, before overrides of single functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Template {
    /// The resourceVersion of the pod template.
    pub version: Arc<str>,
    /// Fingerprint of the service template.
    pub service: u64,
    /// The largest message that wrappers accept, in bytes.
    pub message_limit: u64,
    /// The image that wrappers come from.
    pub wrapper_image: Arc<str>,
}

/// The template that one pod was made from, according to its annotation and its spec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateVersion {
    version: Arc<str>,
    message_limit: u64,
    wrapper_image: Arc<str>,
    /// Missing on pods of the Go runner, whose stamp is the version of the pod template alone.
    settings: Option<SettingsVersion>,
}

/// Fingerprints of settings outside the pod template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SettingsVersion {
    service: u64,
    /// Fingerprint of the function's overrides of the pod template; 0 if there are none.
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
    /// Returns the version of new pods whose function has these `overrides` (0 if it has none).
    #[must_use]
    pub fn new(template: &Template, overrides: u64) -> Self {
        Self {
            version: Arc::clone(&template.version),
            message_limit: template.message_limit,
            wrapper_image: Arc::clone(&template.wrapper_image),
            settings: Some(SettingsVersion {
                service: template.service,
                overrides,
            }),
        }
    }

    /// Returns the version of an existing pod with this stamp, made by any runner.
    #[must_use]
    pub fn of_pod(stamp: &str, message_limit: u64, wrapper_image: &str) -> Self {
        let ours = stamp.split_once('+').and_then(|(version, settings)| {
            let settings = SettingsVersion::parse(settings)?;
            Some((version, Some(settings)))
        });
        let (version, settings) = ours.unwrap_or((stamp, None));
        Self {
            version: version.into(),
            message_limit,
            wrapper_image: wrapper_image.into(),
            settings,
        }
    }

    /// Returns the stamp for a pod's annotation: the resourceVersion of the pod template, `+`, and
    /// fingerprints of the service template and of the overrides.
    ///
    /// The Go runner stamps its pods with the resourceVersion alone, and adopts pods with an equal
    /// stamp. It must not adopt pods of this runner: it would record them under an image name that
    /// no call uses, and later remove a service that one of its own pods needs.
    #[must_use]
    pub fn stamp(&self) -> String {
        match self.settings {
            Some(SettingsVersion { service, overrides }) => {
                format!("{}+{service:x}-{overrides:x}", self.version)
            }
            None => self.version.to_string(),
        }
    }

    /// Returns whether a pod of this version is known to have another wrapper than a pod of
    /// `wanted`.
    ///
    /// A template may bring the wrapper in another way; its image is then unknown, and the result
    /// is `false`.
    #[must_use]
    pub fn has_other_wrapper(&self, wanted: &Self) -> bool {
        !self.wrapper_image.is_empty() && self.wrapper_image != wanted.wrapper_image
    }

    /// Returns whether a pod of this version can serve in place of a pod of `wanted`.
    ///
    /// A pod of the Go runner can if the template and the wrapper's arguments are the same, and the
    /// function has no overrides: it is unknown which values of overrides that pod has. The image
    /// of the wrapper does not matter, because all wrappers serve the same calls.
    #[must_use]
    pub fn serves_for(&self, wanted: &Self) -> bool {
        let settings = match (self.settings, wanted.settings) {
            (None, Some(wanted)) => wanted.overrides == 0,
            (known, wanted) => known == wanted,
        };
        settings && self.version == wanted.version && self.message_limit == wanted.message_limit
    }

    /// Returns whether this version is known to be older than `other`.
    ///
    /// resourceVersions compare as numbers. If one is not a number, the order is unknown: the pod
    /// may belong to another replica that saw a newer template first, and is kept for its TTL.
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
    fn parse(text: &str) -> Option<Self> {
        let (service, overrides) = text.split_once('-')?;
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
            wrapper_image: "wrapper:v1".into(),
        }
    }

    fn of_pod(stamp: &str, message_limit: u64) -> TemplateVersion {
        TemplateVersion::of_pod(stamp, message_limit, "wrapper:v1")
    }

    #[rstest]
    #[case(0)]
    #[case(u64::MAX)]
    fn a_stamp_is_read_back(#[case] overrides: u64) {
        let made = TemplateVersion::new(&template(), overrides);
        assert_eq!(of_pod(&made.stamp(), 6), made);
    }

    #[test]
    fn writes_a_stamp_that_differs_from_the_go_runners_stamp() {
        let made = TemplateVersion::new(&template(), 0);
        assert_eq!(made.stamp(), "17+abc-0");
        assert_eq!(of_pod("17", 6).stamp(), "17");
    }

    #[rstest]
    #[case::same("17+abc-0", 6, 0, true)]
    #[case::another_template("16+abc-0", 6, 0, false)]
    #[case::another_service_template("17+abd-0", 6, 0, false)]
    #[case::another_message_limit("17+abc-0", 5, 0, false)]
    #[case::other_overrides("17+abc-1", 6, 2, false)]
    #[case::malformed("17+abc", 6, 0, false)]
    #[case::go_runner("17", 6, 0, true)]
    #[case::go_runner_before_the_template_changed("16", 6, 0, false)]
    #[case::go_runner_with_another_limit("17", 5, 0, false)]
    #[case::go_runner_with_unknown_overrides("17", 6, 2, false)]
    fn a_pod_is_current_if_it_would_be_made_the_same(
        #[case] stamp: &str,
        #[case] limit: u64,
        #[case] overrides: u64,
        #[case] current: bool,
    ) {
        let pod = of_pod(stamp, limit);
        let wanted = TemplateVersion::new(&template(), overrides);
        assert_eq!(pod.serves_for(&wanted), current);
    }

    #[test]
    fn orders_only_numeric_versions() {
        let version = |text| of_pod(text, 6);
        assert!(version("9").is_older_than(&version("10")));
        assert!(!version("10").is_older_than(&version("9")));
        assert!(!version("built-in").is_older_than(&version("9")));
        assert!(!version("9").is_older_than(&version("9")));
    }
}
