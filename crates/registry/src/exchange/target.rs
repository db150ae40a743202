//! Whom a question goes to, and how its failure is told.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use runner_core::ImageReference;

use super::{Trouble, body::said};
use crate::{RegistryError, endpoint::Endpoint};

const ATTEMPTS: u32 = 4;
/// A mirror that fails has somebody behind it: no time is spent on another try.
const MIRROR_ATTEMPTS: u32 = 1;

/// Whom a question goes to, and on whose behalf.
pub(crate) struct Target<'a> {
    pub(crate) image: &'a ImageReference,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) push: bool,
    pub(super) attempts: u32,
    /// When to stop trying.
    pub(super) until: Instant,
}

// === impl Target ===

impl<'a> Target<'a> {
    /// The registry an image names, for pulling.
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

    /// A mirror of that registry.
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

    /// The registry an image names, for pushing.
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
