//! The target of a request, and the errors of requests to it.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use runner_core::ImageReference;

use super::{Trouble, body::said};
use crate::{RegistryError, endpoint::Endpoint};

const ATTEMPTS: u32 = 4;
/// Number of attempts at a mirror. The next mirror or the registry follows, so there is no retry.
const MIRROR_ATTEMPTS: u32 = 1;

/// The endpoint that a request is sent to, and the image that it is for.
pub(crate) struct Target<'a> {
    pub(crate) image: &'a ImageReference,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) push: bool,
    pub(super) attempts: u32,
    /// Time after which no further attempt is made.
    pub(super) until: Instant,
}

// === impl Target ===

impl<'a> Target<'a> {
    /// Creates a target for pulling from the registry that an image names.
    pub(crate) fn origin(
        image: &'a ImageReference,
        endpoint: &'a Endpoint,
        until: Instant,
    ) -> Self {
        Self {
            image,
            endpoint,
            push: false,
            attempts: ATTEMPTS,
            until,
        }
    }

    /// Creates a target for pulling from a mirror of that registry.
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

    /// Creates a target for pushing to the registry that an image names.
    pub(crate) fn push(image: &'a ImageReference, endpoint: &'a Endpoint, until: Instant) -> Self {
        Self {
            image,
            endpoint,
            push: true,
            attempts: ATTEMPTS,
            until,
        }
    }

    pub(crate) fn final_trouble(&self, why: String) -> Trouble {
        Trouble::Final(self.unreachable(why, None))
    }

    pub(crate) fn unreachable(&self, why: String, retry_after: Option<Duration>) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::Unreachable {
            image,
            registry,
            why,
            retry_after,
        }
    }

    pub(crate) fn not_found(&self, body: &[u8]) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::NotFound {
            image,
            registry,
            said: said(body, ""),
        }
    }

    pub(crate) fn rejected(&self, status: StatusCode, body: &[u8]) -> RegistryError {
        self.unreachable(format!("it answered {status}{}", said(body, ": ")), None)
    }

    pub(crate) fn unusable(&self, why: impl Into<String>) -> RegistryError {
        RegistryError::Unusable {
            image: self.image.to_string(),
            why: why.into(),
        }
    }

    pub(super) fn refused(&self, body: &[u8], credentials: String) -> RegistryError {
        let (image, registry) = (self.image.to_string(), self.endpoint.name.clone());
        RegistryError::Refused {
            image,
            registry,
            said: said(body, ""),
            credentials,
        }
    }
}
