//! Polls the ConfigMap that `--function-pod-template` names.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use runner_core::with_causes;
use tokio::sync::mpsc;

use super::{TemplateError, Templates, report};
use crate::{ApiError, Observation, requests::with_timeout};

/// Time between two reads of a ConfigMap that is missing or cannot be used.
const UNUSABLE_INTERVAL: Duration = Duration::from_secs(2);

/// Polls the ConfigMap and reports every change.
pub(super) async fn follow(
    client: Client,
    namespace: &str,
    name: &str,
    every: Duration,
    observations: mpsc::UnboundedSender<Observation>,
) {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let mut last = None;
    loop {
        let read = match with_timeout(maps.get(name)).await {
            Ok(map) => Some(Templates::of_config_map(&map)),
            Err(error) => {
                let lasting = matches!(error, ApiError::NotFound(_) | ApiError::Refused(_));
                let unreadable = TemplateError::Unreadable {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    error,
                };
                if !lasting {
                    tracing::debug!("{}", with_causes(&unreadable));
                }
                lasting.then_some(Err(unreadable))
            }
        };
        if let Some(templates) = read
            && last.as_ref() != Some(&templates)
        {
            last = Some(templates.clone());
            if observations.send(report(templates)).is_err() {
                return;
            }
        }
        // Without a usable template, poll faster: an operator may be about to correct it.
        let good = matches!(last, Some(Ok(_)));
        let pause = if good {
            every
        } else {
            every.min(UNUSABLE_INTERVAL)
        };
        tokio::time::sleep(pause).await;
    }
}
