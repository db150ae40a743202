//! The objects as they are now, for who does not follow them.

use kube::{Client, api::ListParams};

use super::{
    api, declare,
    status::{Found, has_generation},
};
use crate::Declaration;

/// An object and what the runner has made of it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What it says.
    pub declaration: Declaration,
    /// Whether the runner has acted on its present form; `None` where the definition of the objects
    /// has no field to tell it.
    pub observed: Option<bool>,
    /// What the runner says is wrong with it.
    pub error: Option<String>,
}

/// Why objects cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The definitions are not installed, which is fine where files are enough.
    #[error(
        "the cluster does not know FunctionConfig objects: install the definitions in deploy/crds"
    )]
    Unknown,
    /// The permission is missing.
    #[error("not allowed to list FunctionConfig objects: {0}")]
    Forbidden(String),
    /// Anything else, mostly a cluster that does not answer.
    #[error("cannot list FunctionConfig objects: {0}")]
    Failed(#[source] kube::Error),
}

/// Lists the objects of a namespace.
///
/// # Errors
/// If the cluster does not answer, does not know such objects or does not let us see them.
pub async fn list_objects(client: Client, namespace: &str) -> Result<Vec<Listed>, ListError> {
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
    let told = has_generation(&client).await;
    let listed = objects.iter().map(|object| {
        let found = Found::of(object);
        Listed {
            declaration: declare::declaration(object),
            observed: told.then(|| {
                found.generation.is_some() && found.generation == object.metadata.generation
            }),
            error: found.error,
        }
    });
    Ok(listed.collect())
}
