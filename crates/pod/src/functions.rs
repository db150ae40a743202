//! Converts requested and configured functions into functions of the pool.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use runner_cluster::overrides_fingerprint;
use runner_config::{Configuration, PodSettings};
use runner_core::{Function, ImageReference};
use runner_pool::Settings;
use runner_registry::ImageMetadata;
use tokio::sync::watch;

/// Number of images at which the memory of inspected images is cleared; the registry's cache stays.
const REMEMBERED: usize = 10_000;

/// A factory of the pool's functions, which remembers the metadata that their pods will need.
#[derive(Clone)]
pub(crate) struct Functions {
    configuration: Configuration,
    revision: watch::Receiver<u64>,
    defaults: Settings,
    /// Inspected images, by the pinned image that a pod is created with later.
    inspected: Arc<Mutex<HashMap<ImageReference, Inspected>>>,
}

/// The metadata of an image and the duration of its last lookup.
#[derive(Clone)]
pub(crate) struct Inspected {
    pub(crate) metadata: Arc<ImageMetadata>,
    pub(crate) took: Duration,
}

/// Returns the image that a caller requests.
///
/// With a constraint, that is the image at the tag that the constraint selected; this tag may move.
pub(crate) fn selected(function: &Function, metadata: &ImageMetadata) -> ImageReference {
    match (&function.tag, metadata.reference.tag()) {
        (Some(_), Some(tag)) if function.image.digest().is_none() => function.image.at_tag(tag),
        _ => function.image.clone(),
    }
}

// === impl Functions ===

impl Functions {
    pub(crate) fn new(configuration: Configuration, defaults: Settings) -> Self {
        let revision = configuration.watch();
        Self {
            configuration,
            revision,
            defaults,
            inspected: Arc::default(),
        }
    }

    /// Returns the function that a caller requests.
    pub(crate) fn of_request(
        &self,
        function: &Function,
        metadata: &Arc<ImageMetadata>,
        took: Duration,
    ) -> Arc<runner_pool::Function> {
        self.of_image(&selected(function, metadata), metadata, took)
    }

    /// Returns the function of an image, taken as it is.
    pub(crate) fn of_image(
        &self,
        image: &ImageReference,
        metadata: &Arc<ImageMetadata>,
        took: Duration,
    ) -> Arc<runner_pool::Function> {
        let settings = self.settings(image);
        let function = runner_pool::Function::new(image, metadata.digest.clone(), settings);
        let mut inspected = self.lock();
        if inspected.len() >= REMEMBERED {
            inspected.clear();
        }
        match inspected.get_mut(&**function.image()) {
            Some(known) => known.took = took,
            None => {
                let metadata = Arc::clone(metadata);
                let found = Inspected { metadata, took };
                inspected.insert((**function.image()).clone(), found);
            }
        }
        Arc::new(function)
    }

    /// Returns the metadata that was found when the function was requested.
    pub(crate) fn inspected(&self, image: &ImageReference) -> Option<Inspected> {
        self.lock().get(image).cloned()
    }

    /// Returns the configured settings of a function's pods.
    pub(crate) fn configured(&self, image: &ImageReference) -> PodSettings {
        self.configuration.table().pod_settings(image)
    }

    fn settings(&self, image: &ImageReference) -> Settings {
        // Read before the table: a newer table with an older number is corrected by the next
        // request, but an older table with a newer number would stay wrong.
        let generation = *self.revision.borrow() + 1;
        let configured = self.configured(image);
        let count = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        Settings {
            max_pods: configured.max_pods.map_or(self.defaults.max_pods, count),
            max_waitlist: configured
                .max_queue
                .map_or(self.defaults.max_waitlist, count),
            min_pods: configured.min_pods.map_or(self.defaults.min_pods, count),
            ttl: configured.time_to_live.unwrap_or(self.defaults.ttl),
            overrides: overrides_fingerprint(configured.overrides.as_deref()),
            generation,
            ..self.defaults
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ImageReference, Inspected>> {
        self.inspected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
