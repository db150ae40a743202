//! Errors of registry lookups, and their mapping to errors of evaluations.

use std::time::Duration;

use runner_core::{EvaluationError, Reason};

use crate::Platform;

/// The reason why an image lookup failed. Cloned for all callers that share a lookup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The registry answered that it has no such image.
    #[error(
        "image {image} was not found in registry {registry}{}",
        in_parentheses(message)
    )]
    NotFound {
        /// The requested image reference.
        image: String,
        /// Host of the registry.
        registry: String,
        /// Error text of the registry's answer.
        message: String,
    },
    /// None of the image's tags satisfies the constraint.
    #[error("no tag of {image} satisfies {constraint:?}; {}", tag_summary(*tags, highest.as_deref()))]
    NoTag {
        /// The image without a tag.
        image: String,
        /// The requested constraint.
        constraint: String,
        /// Number of tags of the image.
        tags: usize,
        /// The highest version among the tags.
        highest: Option<String>,
    },
    /// The image is not available for the platform.
    #[error("image {image} is not made for {platform}, only for {}", available.join(", "))]
    NoPlatform {
        /// The requested image reference.
        image: String,
        /// The platform that functions run on.
        platform: Platform,
        /// The platforms that the image is available for.
        available: Vec<String>,
    },
    /// The image does not define a program to run.
    #[error("image {image} has neither entrypoint nor command: there is nothing to run")]
    NoEntrypoint {
        /// The requested image reference.
        image: String,
    },
    /// The image is not a container image, or a part of it exceeds the size limit.
    #[error("image {image} cannot be used: {cause}")]
    Unusable {
        /// The requested image reference.
        image: String,
        /// The problem with the image.
        cause: String,
    },
    /// The registry rejects the credentials, or requires some and none were found.
    #[error(
        "registry {registry} refused access to {image}{}; tried with {credentials}",
        in_parentheses(message)
    )]
    Refused {
        /// The requested image reference.
        image: String,
        /// Host of the registry.
        registry: String,
        /// Error text of the registry's answer.
        message: String,
        /// Description of the source of the credentials; never the credentials themselves.
        credentials: String,
    },
    /// The registry does not answer, or its answer is invalid.
    #[error("registry {registry} cannot be reached for {image}: {cause}")]
    Unreachable {
        /// The requested image reference.
        image: String,
        /// Host of the registry.
        registry: String,
        /// The failure of the last attempt.
        cause: String,
        /// Delay that the registry requests before the next attempt.
        retry_after: Option<Duration>,
    },
    /// The caller's deadline passed before the lookup ended. The lookup continues for later
    /// callers.
    #[error(
        "deadline exceeded after {waited:?} of waiting for registry {registry} to describe {image}"
    )]
    DeadlineExceeded {
        /// The requested image reference.
        image: String,
        /// Host of the registry.
        registry: String,
        /// Time that the caller waited for the lookup.
        waited: Duration,
    },
}

// === impl RegistryError ===

impl RegistryError {
    /// Returns a short name for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::NoTag { .. } => "no_tag",
            Self::NoPlatform { .. } => "no_platform",
            Self::NoEntrypoint { .. } => "no_entrypoint",
            Self::Unusable { .. } => "unusable",
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
        }
    }

    /// Returns the typed cause that clients receive.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotFound { .. } | Self::NoTag { .. } | Self::NoPlatform { .. } => {
                Reason::FunctionNotFound
            }
            Self::NoEntrypoint { .. } | Self::Unusable { .. } => Reason::BadImage,
            Self::Refused { .. } => Reason::RegistryAuth,
            Self::Unreachable { .. } => Reason::RegistryUnreachable,
            Self::DeadlineExceeded { .. } => Reason::DeadlineExceeded,
        }
    }

    /// Returns whether earlier metadata of the image stays valid in spite of this error.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::DeadlineExceeded { .. }
        )
    }
}

impl From<RegistryError> for EvaluationError {
    fn from(error: RegistryError) -> Self {
        let evaluation = Self::new(error.reason(), error.to_string());
        match error {
            RegistryError::NotFound {
                image, registry, ..
            }
            | RegistryError::Refused {
                image, registry, ..
            }
            | RegistryError::DeadlineExceeded {
                image, registry, ..
            } => evaluation.with("image", image).with("registry", registry),
            RegistryError::Unreachable {
                image,
                registry,
                retry_after,
                ..
            } => {
                let evaluation = evaluation.with("image", image).with("registry", registry);
                match retry_after {
                    Some(delay) => evaluation.retry_in(delay),
                    None => evaluation,
                }
            }
            RegistryError::NoTag {
                image, constraint, ..
            } => evaluation.with("image", image).with("tag", constraint),
            RegistryError::NoPlatform { image, .. }
            | RegistryError::NoEntrypoint { image }
            | RegistryError::Unusable { image, .. } => evaluation.with("image", image),
        }
    }
}

/// Returns a registry's message for the end of a sentence, or nothing.
fn in_parentheses(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(" ({message})")
    }
}

/// Describes the tags of an image.
fn tag_summary(tags: usize, highest: Option<&str>) -> String {
    match (tags, highest) {
        (0, _) => "it has no tags".to_owned(),
        (tags, Some(highest)) => format!("it has {tags} tags, the highest version is {highest}"),
        (tags, None) => format!("it has {tags} tags, none of them a version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_reason_and_retry_delay_to_the_client() {
        let error: EvaluationError = RegistryError::Unreachable {
            image: "ghcr.io/x/fn:v1".to_owned(),
            registry: "ghcr.io".to_owned(),
            cause: "it answered 503".to_owned(),
            retry_after: Some(Duration::from_secs(7)),
        }
        .into();
        assert_eq!(error.reason(), Reason::RegistryUnreachable);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(
            error.message(),
            "registry ghcr.io cannot be reached for ghcr.io/x/fn:v1: it answered 503"
        );
        assert!(
            error
                .metadata()
                .contains(&("registry".to_owned(), "ghcr.io".to_owned()))
        );
    }

    #[test]
    fn reports_the_available_tags_if_none_matches() {
        let error = |tags, highest: Option<&str>| {
            RegistryError::NoTag {
                image: "ghcr.io/x/fn".to_owned(),
                constraint: "^9".to_owned(),
                tags,
                highest: highest.map(str::to_owned),
            }
            .to_string()
        };
        assert!(error(3, Some("v1.2.0")).ends_with("it has 3 tags, the highest version is v1.2.0"));
        assert!(error(0, None).ends_with("it has no tags"));
    }
}
