//! The image, endpoint and limits of a request, and the errors of such a request.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use runner_core::ImageReference;

use super::{AttemptError, body::error_text};
use crate::{RegistryError, endpoint::Endpoint};

/// Maximum number of attempts at the registry that an image names.
const ATTEMPTS: u32 = 4;
/// Number of attempts at a mirror. The next mirror or the registry follows, so there is no retry.
const MIRROR_ATTEMPTS: u32 = 1;

/// The image that a request is for, the endpoint that it is sent to, and its limits.
pub(crate) struct RequestContext<'a> {
    pub(crate) image: &'a ImageReference,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) push: bool,
    pub(super) attempts: u32,
    /// Time after which no further attempt is made.
    pub(super) until: Instant,
}

// === impl RequestContext ===

impl<'a> RequestContext<'a> {
    /// Creates a context for pulling from the registry that an image names.
    pub(crate) fn pull(image: &'a ImageReference, endpoint: &'a Endpoint, until: Instant) -> Self {
        Self {
            image,
            endpoint,
            push: false,
            attempts: ATTEMPTS,
            until,
        }
    }

    /// Creates a context for pulling from a mirror of the registry that an image names.
    pub(crate) fn mirror(
        image: &'a ImageReference,
        endpoint: &'a Endpoint,
        until: Instant,
    ) -> Self {
        Self {
            image,
            endpoint,
            push: false,
            attempts: MIRROR_ATTEMPTS,
            until,
        }
    }

    /// Creates a context for pushing to the registry that an image names.
    pub(crate) fn push(image: &'a ImageReference, endpoint: &'a Endpoint, until: Instant) -> Self {
        Self {
            image,
            endpoint,
            push: true,
            attempts: ATTEMPTS,
            until,
        }
    }

    pub(crate) fn permanent_error(&self, cause: String) -> AttemptError {
        AttemptError::Permanent(self.unreachable(cause, None))
    }

    pub(crate) fn unreachable(
        &self,
        cause: String,
        retry_after: Option<Duration>,
    ) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::Unreachable {
            image,
            registry,
            cause,
            retry_after,
        }
    }

    pub(crate) fn not_found(&self, body: &[u8]) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::NotFound {
            image,
            registry,
            message: error_text(body, ""),
        }
    }

    pub(crate) fn rejected(&self, status: StatusCode, body: &[u8]) -> RegistryError {
        self.unreachable(
            format!("it answered {status}{}", error_text(body, ": ")),
            None,
        )
    }

    pub(crate) fn unusable(&self, cause: impl Into<String>) -> RegistryError {
        RegistryError::Unusable {
            image: self.image.to_string(),
            cause: cause.into(),
        }
    }

    pub(super) fn refused(&self, body: &[u8], credentials: String) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::Refused {
            image,
            registry,
            message: error_text(body, ""),
            credentials,
        }
    }
}
