//! Warm-up: what configuration wants ready, resolved and told to the pool.
//!
//! A function is told of as soon as its image is known: neither a slow registry nor an image that
//! does not exist keeps the others cold, and none of it keeps the service from being healthy.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use runner_config::Configuration;
use runner_core::ImageReference;
use runner_pool::{Event, Function};
use runner_registry::Registry;
use tokio::sync::mpsc;

use super::{functions::Functions, message::Message};

/// Images looked up at a time.
const PARALLEL: usize = 8;
/// A tag may move, and an image may appear.
const AGAIN: Duration = Duration::from_secs(5 * 60);
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Keeps the pool's warm set in step with configuration.
pub(super) struct WarmUp {
    pub(super) configuration: Configuration,
    pub(super) registry: Registry,
    pub(super) functions: Functions,
    pub(super) messages: mpsc::UnboundedSender<Message>,
}

/// What became of one round.
enum Round {
    /// Every image is known.
    Complete,
    /// Some are not.
    Partial,
    /// Configuration says something else now.
    Outdated,
    /// Nobody listens any more.
    Over,
}

// === impl WarmUp ===

impl WarmUp {
    /// For as long as the pool lives.
    pub(super) async fn keep(self) {
        let mut tables = self.configuration.watch();
        let mut known = HashMap::new();
        let mut said = HashMap::new();
        loop {
            tables.mark_unchanged();
            let images = self.configuration.table().warm_set().to_vec();
            known.retain(|image, _| images.contains(image));
            said.retain(|image, _| images.contains(image));
            let mut changed = tables.clone();
            let round = tokio::select! {
                round = self.resolve(images, &mut known, &mut said) => round,
                // An image that takes long must not hold up what was configured meanwhile.
                Ok(()) = changed.changed() => Round::Outdated,
            };
            let pause = match round {
                Round::Complete => AGAIN,
                Round::Partial => AGAIN_AFTER_FAILURE,
                Round::Outdated => continue,
                Round::Over => return,
            };
            if let Ok(Err(_)) = tokio::time::timeout(pause, tables.changed()).await {
                return;
            }
        }
    }

    /// Looks the images up and tells the pool after every few.
    async fn resolve(
        &self,
        images: Vec<ImageReference>,
        known: &mut HashMap<ImageReference, Arc<Function>>,
        said: &mut HashMap<ImageReference, String>,
    ) -> Round {
        // What is not wanted any more is let go at once.
        if !self.tell(known) {
            return Round::Over;
        }
        let mut round = Round::Complete;
        let lookups = stream::iter(images).map(|image| self.look_up(image));
        let mut found = lookups.buffer_unordered(PARALLEL).ready_chunks(PARALLEL);
        while let Some(some) = found.next().await {
            for (image, function) in some {
                match function {
                    Ok(function) => {
                        said.remove(&image);
                        known.insert(image, function);
                    }
                    Err(why) => {
                        round = Round::Partial;
                        if said.get(&image) != Some(&why) {
                            tracing::warn!(%image, error = why, "cannot warm up");
                            said.insert(image, why);
                        }
                    }
                }
            }
            if !self.tell(known) {
                return Round::Over;
            }
        }
        let cold = said
            .iter()
            .map(|(image, why)| (image.to_string(), why.clone()));
        let _ = self.messages.send(Message::Cold(cold.collect()));
        round
    }

    async fn look_up(
        &self,
        image: ImageReference,
    ) -> (ImageReference, Result<Arc<Function>, String>) {
        let asked = Instant::now();
        let function = match self.registry.inspect(&image, None, None).await {
            Ok(metadata) => Ok(self.functions.of_image(&image, &metadata, asked.elapsed())),
            Err(error) => Err(error.to_string()),
        };
        (image, function)
    }

    fn tell(&self, known: &HashMap<ImageReference, Arc<Function>>) -> bool {
        let configured = Event::Configured(known.values().cloned().collect());
        self.messages.send(Message::Event(configured)).is_ok()
    }
}
