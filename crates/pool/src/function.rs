//! A function as the pool is told of it: its image and how many pods it may have.

use std::{fmt, sync::Arc, time::Duration};

use runner_core::{Digest, ImageReference};

/// The shortest time that an unused pod is kept.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// A function's image at one digest, and its settings.
///
/// Pods run exactly one digest, so each digest of a tag is a function of its own. Once a tag has
/// moved, the pods of the digest it left drain while those of the new one serve.
#[derive(Debug)]
pub struct Function {
    image: Arc<ImageReference>,
    key: Arc<str>,
    /// The reference whose digest may change; none if the caller named the digest himself.
    tag: Option<Arc<str>>,
    settings: Settings,
}

/// What configuration says about a function's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most pods at a time (`max-parallel-pods-per-function`); 0 counts as 1.
    pub max_pods: usize,
    /// What a pod holds before another is started (`max-waitlist-length`); 0 counts as 1.
    pub max_waitlist: usize,
    /// What a pod holds at most, once no other can be started; at least `max_waitlist`.
    pub max_in_flight: usize,
    /// Number of pods kept for a function of the warm set, whether used or not; 0 counts as 1, and
    /// more than `max_pods` as `max_pods`.
    pub min_pods: usize,
    /// How long an unused pod is kept; less than a second counts as a second.
    pub ttl: Duration,
    /// A fingerprint of what the function overrides in the pod template; 0: nothing.
    pub overrides: u64,
    /// Which configuration these come from. A request that was on its way while configuration
    /// changed carries older settings; those of the highest generation hold.
    pub generation: u64,
}

// === impl Function ===

impl Function {
    /// The function that `requested` names while its tag points at `digest`.
    #[must_use]
    pub fn new(requested: &ImageReference, digest: Digest, settings: Settings) -> Self {
        let tag = requested
            .digest()
            .is_none()
            .then(|| requested.to_string().into());
        Self::pinned(Arc::new(requested.at_digest(digest)), tag, settings)
    }

    /// The function a pod runs, known by the pod's image alone.
    pub(crate) fn of_pod(image: Arc<ImageReference>, settings: Settings) -> Self {
        Self::pinned(image, None, settings)
    }

    fn pinned(image: Arc<ImageReference>, tag: Option<Arc<str>>, settings: Settings) -> Self {
        let key = image.to_string().into();
        Self {
            image,
            key,
            tag,
            settings,
        }
    }

    /// The image, pinned to its digest.
    #[must_use]
    pub fn image(&self) -> &Arc<ImageReference> {
        &self.image
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(crate) fn tag(&self) -> Option<&Arc<str>> {
        self.tag.as_ref()
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

// === impl Settings ===

impl Settings {
    pub(crate) fn pods(&self) -> usize {
        self.max_pods.max(1)
    }

    pub(crate) fn waitlist(&self) -> usize {
        self.max_waitlist.max(1)
    }

    /// Returns how many pods a warm function keeps, used or not.
    pub(crate) fn kept_pods(&self) -> usize {
        self.min_pods.clamp(1, self.pods())
    }

    /// Returns how long an unused pod is kept. Annotations hold whole seconds, and a pod that may
    /// go at once would be gone before it is used.
    pub(crate) fn time_to_live(&self) -> Duration {
        self.ttl.max(SHORTEST_TTL)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.max_in_flight.max(self.waitlist())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_pods: 1,
            max_waitlist: 2,
            max_in_flight: 16,
            min_pods: 0,
            ttl: Duration::from_secs(30 * 60),
            overrides: 0,
            generation: 0,
        }
    }
}
