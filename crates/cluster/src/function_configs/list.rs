//! Lists the current objects, without watching them.

use kube::{Client, api::ListParams};
use runner_config::Declaration;

use super::{
    api, declare,
    status::{FoundStatus, has_generation},
};

/// An object, and its status as the runner wrote it.
#[derive(Clone, Debug)]
pub struct ListedFunctionConfig {
    /// Content of the object.
    pub declaration: Declaration,
    /// Whether the runner has processed the current generation; `None` if the CRD has no field.
    pub observed: Option<bool>,
    /// Error that the runner reported.
    pub error: Option<String>,
}

/// The reason why objects cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The CRDs are not installed, which is fine if only files are used.
    #[error(
        "the cluster does not know FunctionConfig objects: install the definitions in deploy/crds"
    )]
    Unknown,
    /// The permission is missing.
    #[error("not allowed to list FunctionConfig objects: {0}")]
    Forbidden(String),
    /// The request failed for another reason; mostly, the cluster does not answer.
    #[error("cannot list FunctionConfig objects")]
    Failed(#[source] kube::Error),
}

/// Lists the objects of a namespace.
///
/// # Errors
/// Fails if the cluster does not answer, the kind does not exist, or the permission is missing.
pub async fn list_function_configs(
    client: Client,
    namespace: &str,
) -> Result<Vec<ListedFunctionConfig>, ListError> {
    let objects = api(client.clone(), namespace)
        .list(&ListParams::default())
        .await;
    let objects = objects.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 404 => ListError::Unknown,
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            ListError::Forbidden(status.message)
        }
        error => ListError::Failed(error),
    })?;
    let has_generation = has_generation(&client).await;
    let listed = objects.iter().map(|object| {
        let found = FoundStatus::of(object);
        ListedFunctionConfig {
            declaration: declare::declaration(object),
            observed: has_generation.then(|| {
                found.generation.is_some() && found.generation == object.metadata.generation
            }),
            error: found.error,
        }
    });
    Ok(listed.collect())
}
