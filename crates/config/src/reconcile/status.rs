//! Writing back: the two status fields that are ours, and the finalizer that no longer is anyone's.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::OLD_FINALIZER;
use crate::{
    Source,
    objects::{GROUP, VERSION},
};

/// The field for the generation that a function runner acted on. Newer definitions lack it.
const GENERATION: &str = "functionRunnerObservedGeneration";
/// Time that the API server may take to describe the objects.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(5);
const MANAGER: &str = "krm-function-runner";
/// How many objects are written at once.
const PARALLEL: usize = 8;
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// What an object is told: which generation was acted on, and what was wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The generation that was acted on; `None` if the definition has no field for it.
    pub(super) generation: Option<i64>,
    pub(super) error: Option<String>,
}

/// The status as it was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) generation: Option<i64>,
    pub(super) error: Option<String>,
}

/// One patch to make.
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

// === impl Found ===

impl Found {
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

    pub(super) fn says(&self, report: &Report) -> bool {
        let generation = report.generation.is_none() || self.generation == report.generation;
        generation && self.error == report.error
    }
}

// === impl Write ===

impl Write {
    /// A merge patch of our fields alone; a null takes the old error away. The uid makes it miss
    /// an object of the same name that came after.
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

    /// Takes the old finalizer off. The list is replaced whole, so the resource version must be
    /// the one it was read at; if it is not, a newer object is on its way to us.
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

/// Whether the installed definition has the field for our generation.
///
/// The API server describes its objects to every account, so this needs no permission to read
/// definitions. Without an answer the field counts as there: an API server drops unknown fields.
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

/// Whether an `OpenAPI` document gives `FunctionConfig` the field; `None` if it does not describe it.
fn describes_generation(document: &Value) -> Option<bool> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let schema = schemas.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] == "FunctionConfig"))
    })?;
    let status = schema.pointer("/properties/status/properties")?;
    Some(status.get(GENERATION).is_some())
}

/// Makes the patches in the order of their objects' changes, the newest of each only.
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
            .map(|write| async move { (write.part, make(api, &write).await) })
            .buffer_unordered(PARALLEL);
        while let Some((part, made)) = results.next().await {
            if let Err(error) = made
                && refused.insert(part)
            {
                warn_of_refusal(part, &error);
            }
        }
    }
}

/// Makes one patch, however long the API server is away; an error is its refusal.
async fn make(api: &Api<DynamicObject>, write: &Write) -> Result<(), kube::Error> {
    let parameters = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..Default::default()
    };
    let patch = Patch::Merge(&write.patch);
    let mut delay = FIRST_RETRY;
    loop {
        let result = match write.part {
            Part::Status => api.patch_status(&write.name, &parameters, &patch).await,
            Part::Metadata => api.patch(&write.name, &parameters, &patch).await,
        };
        match result {
            Ok(_) => return Ok(()),
            // Gone, or changed since: in both cases the watch knows better by now.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
            Err(error @ kube::Error::Api(_)) if is_refusal(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(name = write.name, %error, "will write again");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LAST_RETRY);
            }
        }
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
        "cannot write to FunctionConfig objects, which still take effect: {error}; \
         grant patch on {resource} (said once)"
    );
}
