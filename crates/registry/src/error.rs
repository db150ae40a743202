//! What can go wrong between the runner and a registry, and what a client is told of it.

use std::time::Duration;

use runner_core::{EvaluationError, Reason};

use crate::Platform;

/// Why nothing is known of an image. Cheap to clone: callers that asked together share one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The registry answered that it has no such image.
    #[error("image {image} was not found in registry {registry}{}", quoted(said))]
    NotFound {
        /// What was asked for.
        image: String,
        /// Who was asked.
        registry: String,
        /// What the registry said.
        said: String,
    },
    /// None of the image's tags satisfies the constraint.
    #[error("no tag of {image} satisfies {constraint:?}; {}", seen(*tags, highest.as_deref()))]
    NoTag {
        /// The image without a tag.
        image: String,
        /// The constraint.
        constraint: String,
        /// How many tags there are.
        tags: usize,
        /// The highest version among them.
        highest: Option<String>,
    },
    /// The image is not made for the platform.
    #[error("image {image} is not made for {platform}, only for {}", available.join(", "))]
    NoPlatform {
        /// What was asked for.
        image: String,
        /// What it should run on.
        platform: Platform,
        /// What it can run on.
        available: Vec<String>,
    },
    /// The image does not say what to run.
    #[error("image {image} has neither entrypoint nor command: there is nothing to run")]
    NoEntrypoint {
        /// What was asked for.
        image: String,
    },
    /// The image is no container image, or a part of it is larger than any real one's.
    #[error("image {image} cannot be used: {why}")]
    Unusable {
        /// What was asked for.
        image: String,
        /// What is wrong with it.
        why: String,
    },
    /// The registry refuses the credentials, or wants some where there are none.
    #[error(
        "registry {registry} refused access to {image}{}; tried with {credentials}",
        quoted(said)
    )]
    Refused {
        /// What was asked for.
        image: String,
        /// Who refused.
        registry: String,
        /// What the registry said.
        said: String,
        /// Where the credentials came from; never the credentials themselves.
        credentials: String,
    },
    /// The registry does not answer, or not sensibly.
    #[error("registry {registry} cannot be reached for {image}: {why}")]
    Unreachable {
        /// What was asked for.
        image: String,
        /// Who was asked.
        registry: String,
        /// What happened.
        why: String,
        /// When the registry wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The caller's deadline passed first. The lookup goes on for those who ask next.
    #[error(
        "deadline exceeded after {waited:?} of waiting for registry {registry} to tell about {image}"
    )]
    DeadlineExceeded {
        /// What was asked for.
        image: String,
        /// Who was asked.
        registry: String,
        /// How long the caller waited here.
        waited: Duration,
    },
}

// === impl RegistryError ===

impl RegistryError {
    /// A short name for metrics.
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

    /// What a client can act on.
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

    /// Whether what was known before is still the best there is.
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

fn quoted(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!(" ({said})")
    }
}

fn seen(tags: usize, highest: Option<&str>) -> String {
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
    fn a_client_learns_the_reason_and_when_to_come_back() {
        let error: EvaluationError = RegistryError::Unreachable {
            image: "ghcr.io/x/fn:v1".to_owned(),
            registry: "ghcr.io".to_owned(),
            why: "it answered 503".to_owned(),
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
    fn a_missing_tag_says_what_there_is() {
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
