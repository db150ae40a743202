//! Warm-up: looks up the images of the warm set and passes their functions to the pool.
//!
//! A function is passed on as soon as its image is known. A slow registry or a missing image does
//! not delay the other functions, and neither affects the health of the service.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use runner_config::Configuration;
use runner_core::Function as Wanted;
use runner_pool::{Event, Function};
use runner_registry::Registry;

use crate::{
    functions::Functions,
    inbox::{Inbox, Message},
};

/// Number of images looked up at a time.
const PARALLEL: usize = 8;
/// Pause before the images are looked up again: a tag may move, and an image may appear.
const AGAIN: Duration = Duration::from_secs(5 * 60);
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// A task that keeps the pool's warm set in step with the configuration.
pub(crate) struct WarmUp {
    pub(crate) configuration: Configuration,
    pub(crate) registry: Registry,
    pub(crate) functions: Functions,
    pub(crate) inbox: Inbox,
}

/// The outcome of one round of lookups.
enum Round {
    /// Every image was found.
    Complete,
    /// Some images were not found.
    Partial,
    /// The configuration changed during the round.
    Outdated,
    /// The driver has ended.
    Over,
}

// === impl WarmUp ===

impl WarmUp {
    /// Runs until the driver or the configuration is gone.
    pub(crate) async fn keep(self) {
        let mut tables = self.configuration.watch();
        let mut known = HashMap::new();
        let mut said = HashMap::new();
        loop {
            tables.mark_unchanged();
            let wanted = self.configuration.table().warm_set().to_vec();
            known.retain(|one, _| wanted.contains(one));
            said.retain(|one, _| wanted.contains(one));
            let mut changed = tables.clone();
            let round = tokio::select! {
                round = self.resolve(wanted, &mut known, &mut said) => round,
                // A slow lookup must not delay functions that were configured in the meantime.
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

    /// Looks up the images and updates the pool after every few of them.
    async fn resolve(
        &self,
        wanted: Vec<Wanted>,
        known: &mut HashMap<Wanted, Arc<Function>>,
        said: &mut HashMap<Wanted, String>,
    ) -> Round {
        // Functions that are no longer wanted leave the warm set at once.
        if !self.update_pool(known).await {
            return Round::Over;
        }
        let mut round = Round::Complete;
        let lookups = stream::iter(wanted).map(|one| self.look_up(one));
        let mut found = lookups.buffer_unordered(PARALLEL).ready_chunks(PARALLEL);
        while let Some(some) = found.next().await {
            for (wanted, function) in some {
                match function {
                    Ok(function) => {
                        said.remove(&wanted);
                        known.insert(wanted, function);
                    }
                    Err(why) => {
                        round = Round::Partial;
                        if said.get(&wanted) != Some(&why) {
                            let image = shown(&wanted);
                            tracing::warn!(image, error = why, "cannot warm up");
                            said.insert(wanted, why);
                        }
                    }
                }
            }
            if !self.update_pool(known).await {
                return Round::Over;
            }
        }
        let cold = said
            .iter()
            .map(|(wanted, why)| (shown(wanted), why.clone()));
        self.inbox.send(Message::Cold(cold.collect())).await;
        round
    }

    async fn look_up(&self, wanted: Wanted) -> (Wanted, Result<Arc<Function>, String>) {
        let asked = Instant::now();
        let found = self
            .registry
            .inspect(&wanted.image, wanted.tag.as_ref(), None);
        let function = match found.await {
            Ok(metadata) => Ok(self
                .functions
                .of_request(&wanted, &metadata, asked.elapsed())),
            Err(error) => Err(error.to_string()),
        };
        (wanted, function)
    }

    /// Passes the warm set to the pool. Returns whether the driver still runs.
    ///
    /// A constraint and a version may select the same image, which counts once.
    async fn update_pool(&self, known: &HashMap<Wanted, Arc<Function>>) -> bool {
        let by_image: HashMap<_, _> = known.values().map(|it| (it.image(), it)).collect();
        let configured = Event::Configured(by_image.into_values().cloned().collect());
        self.inbox.send(Message::Event(configured)).await
    }
}

/// Returns the image and its constraint, for logs and the status.
fn shown(wanted: &Wanted) -> String {
    match &wanted.tag {
        Some(tag) => format!("{} ({tag})", wanted.image),
        None => wanted.image.to_string(),
    }
}
