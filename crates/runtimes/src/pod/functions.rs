//! From what is asked for and configured to what the pool knows as a function.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use runner_cluster::fingerprint;
use runner_config::{Configuration, PodSettings};
use runner_core::{Function, ImageReference};
use runner_pool::Settings;
use runner_registry::ImageMetadata;
use tokio::sync::watch;

/// Beyond this many images the memory of entrypoints starts afresh; the registry's own remains.
const REMEMBERED: usize = 10_000;

/// Makes the pool's functions, and remembers what their pods will need.
#[derive(Clone)]
pub(super) struct Functions {
    configuration: Configuration,
    revision: watch::Receiver<u64>,
    defaults: Settings,
    /// What was inspected, by the pinned image that a pod is created with later.
    inspected: Arc<Mutex<HashMap<ImageReference, Inspected>>>,
}

/// What was found out about an image, and how long the last look took.
#[derive(Clone)]
pub(super) struct Inspected {
    pub(super) metadata: Arc<ImageMetadata>,
    pub(super) took: Duration,
}

/// The image a caller asks for: with a constraint, at the tag that the constraint selected, which
/// is what may move.
pub(super) fn selected(function: &Function, metadata: &ImageMetadata) -> ImageReference {
    match (&function.tag, metadata.reference.tag()) {
        (Some(_), Some(tag)) if function.image.digest().is_none() => function.image.at_tag(tag),
        _ => function.image.clone(),
    }
}

// === impl Functions ===

impl Functions {
    pub(super) fn new(configuration: Configuration, defaults: Settings) -> Self {
        let revision = configuration.watch();
        Self {
            configuration,
            revision,
            defaults,
            inspected: Arc::default(),
        }
    }

    /// The function a caller asks for.
    pub(super) fn of_request(
        &self,
        function: &Function,
        metadata: &Arc<ImageMetadata>,
        took: Duration,
    ) -> Arc<runner_pool::Function> {
        self.of_image(&selected(function, metadata), metadata, took)
    }

    /// The function of an image as it is.
    pub(super) fn of_image(
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

    /// What was inspected when the function was asked for.
    pub(super) fn inspected(&self, image: &ImageReference) -> Option<Inspected> {
        self.lock().get(image).cloned()
    }

    /// What configuration says about a function's pods.
    pub(super) fn configured(&self, image: &ImageReference) -> PodSettings {
        self.configuration.table().pod_settings(image)
    }

    fn settings(&self, image: &ImageReference) -> Settings {
        // Before the table: a newer table with an older number is corrected by the next request,
        // the other way round it would stay wrong.
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
            overrides: fingerprint(configured.overrides.as_deref()),
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
