//! Sources of templates: objects in the pod namespace, or a ConfigMap.

mod config_map;
mod objects;

use std::{sync::Arc, time::Duration};

use kube::Client;
use runner_core::with_causes;
use tokio::sync::mpsc;

pub use objects::{MissingTemplates, TemplateObjects};

use super::{TemplateError, Templates};
use crate::Observation;

/// Shortest time between two reads of the template ConfigMap.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// A source of templates.
pub enum TemplateSource {
    /// `PodTemplate` and `ServiceTemplate` objects in the pod namespace.
    Objects(TemplateObjects),
    /// The ConfigMap of older installations, whose permissions allow reading but not watching it.
    ConfigMap {
        /// Client of the API server.
        client: Client,
        /// The runner's own namespace.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
        /// Time between two reads; at least 1 s.
        every: Duration,
    },
}

// === impl TemplateSource ===

impl TemplateSource {
    /// Reports the templates and their changes until the receiver is dropped.
    pub(crate) async fn follow(self, observations: mpsc::UnboundedSender<Observation>) {
        match self {
            Self::Objects(objects) => objects.follow(observations).await,
            Self::ConfigMap {
                client,
                namespace,
                name,
                every,
            } => {
                let every = every.max(SHORTEST_INTERVAL);
                config_map::follow(client, &namespace, &name, every, observations).await;
            }
        }
    }
}

/// Logs the templates, or the reason why they cannot be used, and returns the observation.
fn report(templates: Result<Templates, TemplateError>) -> Observation {
    match &templates {
        Ok(templates) => tracing::info!(version = %templates.version, "pod template"),
        Err(error) => tracing::error!(
            "{}: the last good template stays in use; without one no pods are started",
            with_causes(error)
        ),
    }
    Observation::Templates(templates.map(Arc::new))
}

#[cfg(test)]
mod tests;
