//! A function as the pool sees it: an image and the settings of its pods.

use std::{fmt, sync::Arc, time::Duration};

use runner_core::{Digest, ImageReference};

/// Lower bound of the time for which an unused pod is kept.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// An image of a function at one digest, and its settings.
///
/// A pod runs exactly one digest, so each digest of a tag is a function of its own. Once a tag has
/// moved, the pods of the old digest drain while those of the new digest serve.
#[derive(Debug)]
pub struct Function {
    image: Arc<ImageReference>,
    key: Arc<str>,
    /// The reference whose digest may change; `None` if the caller gave the digest.
    tag: Option<Arc<str>>,
    settings: Settings,
}

/// Configuration of a function's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum number of pods (`max-parallel-pods-per-function`); 0 counts as 1.
    pub max_pods: usize,
    /// Number of requests on a pod above which another pod is started (`max-waitlist-length`); 0
    /// counts as 1.
    pub max_waitlist: usize,
    /// Maximum number of requests on a pod once no other pod can be started; at least
    /// `max_waitlist`.
    pub max_in_flight: usize,
    /// Number of pods kept for a function of the warm set, whether used or not; 0 counts as 1, and
    /// more than `max_pods` as `max_pods`.
    pub min_pods: usize,
    /// Time for which an unused pod is kept; less than 1 s counts as 1 s.
    pub ttl: Duration,
    /// Fingerprint of the function's overrides of the pod template; 0 if there are none.
    pub overrides: u64,
    /// Generation of the configuration that these settings come from.
    ///
    /// A request that arrives while configuration changes may carry older settings; the settings of
    /// the highest generation apply.
    pub generation: u64,
}

// === impl Function ===

impl Function {
    /// Returns the function that `requested` names while its tag points at `digest`.
    #[must_use]
    pub fn new(requested: &ImageReference, digest: Digest, settings: Settings) -> Self {
        let tag = requested
            .digest()
            .is_none()
            .then(|| requested.to_string().into());
        Self::pinned(Arc::new(requested.at_digest(digest)), tag, settings)
    }

    /// Returns the function that a pod runs, derived from the pod's image alone.
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

    /// Returns the image, pinned to its digest.
    #[must_use]
    pub fn image(&self) -> &Arc<ImageReference> {
        &self.image
    }

    /// Returns the settings of the function.
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

    /// Returns the number of pods that a warm function keeps, used or not.
    pub(crate) fn kept_pods(&self) -> usize {
        self.min_pods.clamp(1, self.pods())
    }

    /// Returns the time for which an unused pod is kept, at least 1 s.
    ///
    /// Annotations hold whole seconds, and a pod that may be removed at once would be gone before
    /// its first use.
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
