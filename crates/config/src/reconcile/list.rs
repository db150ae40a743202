//! The objects as they are now, for who does not follow them.

use kube::{Client, api::ListParams};

use super::{api, declare, status::Found};
use crate::Declaration;

/// An object and what the runner has made of it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What it says.
    pub declaration: Declaration,
    /// Whether the runner has acted on its present form.
    pub observed: bool,
    /// What the runner says is wrong with it.
    pub error: Option<String>,
}

/// Lists the objects of a namespace.
///
/// # Errors
/// If the cluster does not answer, does not know such objects or does not let us see them.
pub async fn list_objects(client: Client, namespace: &str) -> Result<Vec<Listed>, kube::Error> {
    let objects = api(client, namespace).list(&ListParams::default()).await?;
    let listed = objects.iter().map(|object| {
        let found = Found::of(object);
        Listed {
            declaration: declare::declaration(object),
            observed: found.generation.is_some() && found.generation == object.metadata.generation,
            error: found.error,
        }
    });
    Ok(listed.collect())
}
