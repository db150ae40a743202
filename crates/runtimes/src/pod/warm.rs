//! Warm-up: what configuration wants ready, resolved and told to the pool.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use runner_config::Configuration;
use runner_pool::Event;
use runner_registry::Registry;
use tokio::sync::mpsc;

use super::{functions::Functions, message::Message};

/// Images looked up at a time.
const PARALLEL: usize = 8;
/// A tag may move, and an image may appear.
const AGAIN: Duration = Duration::from_secs(5 * 60);
const AGAIN_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Keeps the pool's warm set in step with configuration, for as long as the pool lives.
pub(super) async fn keep(
    configuration: Configuration,
    registry: Registry,
    functions: Functions,
    messages: mpsc::UnboundedSender<Message>,
) {
    let mut tables = configuration.watch();
    loop {
        tables.mark_unchanged();
        let images = configuration.table().warm_set().to_vec();
        let wanted = images.len();
        let found: Vec<_> = stream::iter(images)
            .map(|image| {
                let (registry, functions) = (registry.clone(), functions.clone());
                async move {
                    let asked = Instant::now();
                    match registry.inspect(&image, None, None).await {
                        Ok(metadata) => {
                            Some(functions.of_image(&image, &metadata, asked.elapsed()))
                        }
                        Err(error) => {
                            tracing::warn!(%image, %error, "cannot warm up");
                            None
                        }
                    }
                }
            })
            .buffer_unordered(PARALLEL)
            .filter_map(std::future::ready)
            .collect()
            .await;
        let complete = found.len() == wanted;
        if messages
            .send(Message::Event(Event::Configured(found)))
            .is_err()
        {
            return;
        }
        let pause = if complete { AGAIN } else { AGAIN_AFTER_FAILURE };
        if let Ok(Err(_)) = tokio::time::timeout(pause, tables.changed()).await {
            return;
        }
    }
}
