//! Writes the runner's two status fields, and removes the obsolete finalizer.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use futures::{StreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use runner_config::Source;
use runner_core::with_causes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::OLD_FINALIZER;
use crate::{
    names::FIELD_MANAGER,
    objects::{GROUP, VERSION},
};

/// Status field for the generation that a function runner processed; newer CRDs lack it.
const GENERATION: &str = "functionRunnerObservedGeneration";
/// Time limit of the request for the OpenAPI document.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest number of concurrent patches.
const PARALLEL: usize = 8;
/// Back-off between attempts to write a patch: 500 ms to 30 s, without an end.
const RETRIES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(500))
    .with_max_delay(Duration::from_secs(30))
    .without_max_times();

/// The content of the runner's status fields: the processed generation and its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Processed generation; `None` if the CRD has no field for it.
    pub(super) generation: Option<i64>,
    pub(super) error: Option<String>,
}

/// The current content of the runner's status fields.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundStatus {
    pub(super) generation: Option<i64>,
    pub(super) error: Option<String>,
}

/// A pending patch of one object.
#[derive(Clone, Debug)]
pub(super) struct Write {
    name: String,
    part: Part,
    patch: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Status,
    Metadata,
}

// === impl FoundStatus ===

impl FoundStatus {
    pub(super) fn of(object: &DynamicObject) -> Self {
        let field = |name: &str| {
            object
                .data
                .get("status")
                .and_then(|status| status.get(name))
        };
        Self {
            generation: field(GENERATION).and_then(Value::as_i64),
            error: field("error")
                .and_then(Value::as_str)
                .filter(|error| !error.is_empty())
                .map(str::to_owned),
        }
    }

    /// Returns whether the status already has the content of a report.
    pub(super) fn has(&self, report: &Report) -> bool {
        let generation = report.generation.is_none() || self.generation == report.generation;
        generation && self.error == report.error
    }
}

// === impl Write ===

impl Write {
    /// Returns a merge patch of the runner's fields alone; a null removes the old error.
    ///
    /// The UID makes the patch fail for a later object of the same name.
    pub(super) fn status(source: &Source, uid: Option<&str>, report: &Report) -> Self {
        let Report { generation, error } = report;
        let mut status = json!({"error": error});
        if let Some(generation) = generation {
            status[GENERATION] = json!(generation);
        }
        let mut patch = json!({"status": status});
        if let Some(uid) = uid {
            patch["metadata"] = json!({"uid": uid});
        }
        let name = match source {
            Source::Object { name, .. } => name.to_string(),
            Source::ConfigFile { .. } | Source::PodCacheFile { .. } => source.to_string(),
        };
        Self {
            name,
            part: Part::Status,
            patch,
        }
    }

    /// Returns a patch that removes the old finalizer.
    ///
    /// The patch replaces the whole list, so it requires the resourceVersion at which the list was
    /// read. If the object has a newer one, the watch is about to show it.
    pub(super) fn release(object: &DynamicObject) -> Self {
        let others: Vec<&String> = object
            .finalizers()
            .iter()
            .filter(|finalizer| *finalizer != OLD_FINALIZER)
            .collect();
        let patch = json!({
            "metadata": {"finalizers": others, "resourceVersion": object.resource_version()}
        });
        Self {
            name: object.name_any(),
            part: Part::Metadata,
            patch,
        }
    }
}

/// Returns whether the installed CRD has the field for the runner's generation.
///
/// Every account may read the API server's OpenAPI document, so this needs no permission to read
/// CRDs. Without an answer the field is assumed to exist: an API server drops unknown fields.
pub(super) async fn has_generation(client: &Client) -> bool {
    let request = http::Request::get(format!("/openapi/v3/apis/{GROUP}/{VERSION}"));
    let Ok(request) = request.body(Vec::new()) else {
        return true;
    };
    let answer = tokio::time::timeout(SCHEMA_TIMEOUT, client.request::<Value>(request)).await;
    match answer {
        Ok(Ok(document)) => describes_generation(&document).unwrap_or(true),
        _ => true,
    }
}

/// Returns whether `FunctionConfig` has the field in an `OpenAPI` document.
///
/// Returns `None` if the document does not describe `FunctionConfig`.
fn describes_generation(document: &Value) -> Option<bool> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let schema = schemas.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] == "FunctionConfig"))
    })?;
    let status = schema.pointer("/properties/status/properties")?;
    Some(status.get(GENERATION).is_some())
}

/// Sends the patches as they arrive; of several pending patches of an object only the newest.
pub(super) async fn write_all(api: Api<DynamicObject>, mut writes: mpsc::UnboundedReceiver<Write>) {
    let mut refused = BTreeSet::new();
    while let Some(first) = writes.recv().await {
        let mut newest = BTreeMap::new();
        let mut next = Some(first);
        while let Some(write) = next {
            newest.insert((write.name.clone(), write.part), write);
            next = writes.try_recv().ok();
        }
        let api = &api;
        let mut results = stream::iter(newest.into_values())
            .map(|write| async move { (write.part, send(api, &write).await) })
            .buffer_unordered(PARALLEL);
        while let Some((part, sent)) = results.next().await {
            if let Err(error) = sent
                && refused.insert(part)
            {
                warn_of_refusal(part, &error);
            }
        }
    }
}

/// Sends one patch, and retries for as long as the API server does not answer.
///
/// # Errors
/// Fails if the API server refuses the patch.
async fn send(api: &Api<DynamicObject>, write: &Write) -> Result<(), kube::Error> {
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..Default::default()
    };
    let patch = Patch::Merge(&write.patch);
    let patch_once = async || match write.part {
        Part::Status => api.patch_status(&write.name, &parameters, &patch).await,
        Part::Metadata => api.patch(&write.name, &parameters, &patch).await,
    };
    let sent = patch_once
        .retry(RETRIES)
        .sleep(tokio::time::sleep)
        .when(|error| !is_refusal(error))
        .notify(|error, _| {
            let error = with_causes(error);
            tracing::debug!(name = write.name, error, "will write again");
        })
        .await;
    match sent {
        // The object was removed or changed meanwhile; the watch shows the new state.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        sent => sent.map(drop),
    }
}

fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

fn warn_of_refusal(part: Part, error: &kube::Error) {
    let resource = match part {
        Part::Status => "functionconfigs/status",
        Part::Metadata => "functionconfigs",
    };
    tracing::warn!(
        "cannot write to FunctionConfig objects, which still take effect: {}; \
         grant patch on {resource} (said once)",
        with_causes(error)
    );
}
