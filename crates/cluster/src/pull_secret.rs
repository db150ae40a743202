//! Synchronises the image pull secret of function pods with the runner's docker config file.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{DeleteParams, Preconditions},
    core::ObjectMeta,
};
use runner_core::with_causes;

use crate::{
    ApiError,
    requests::{post, with_timeout},
};

const KIND: &str = "kubernetes.io/dockerconfigjson";
const KEY: &str = ".dockerconfigjson";
/// Time between two reads of the file; reading a small file costs almost nothing.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Time after which the Secret is compared again although the file did not change.
///
/// Others may change or remove the Secret, and it cannot be watched.
const COMPARE_EVERY: Duration = Duration::from_secs(60);

/// A task that copies the docker config file into the Secret.
///
/// The runner may create, read, update and delete the Secret; it never lists or watches it.
pub struct PullSecret {
    secrets: Api<Secret>,
    name: String,
    file: PathBuf,
    /// Content of the Secret when it was last compared, and the time of the comparison.
    written: Option<(Vec<u8>, Instant)>,
    /// Text of the last logged error, until a round succeeds.
    logged_error: Option<String>,
}

// === impl PullSecret ===

impl PullSecret {
    /// Returns a task that has not read or written anything yet.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, file: PathBuf) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            name: name.to_owned(),
            file,
            written: None,
            logged_error: None,
        }
    }

    /// Synchronises the Secret every 2 s and never returns.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            self.synchronise().await;
        }
    }

    /// Synchronises the Secret once; logs a failure unless the previous failure was the same.
    pub async fn synchronise(&mut self) {
        let error = match fs::read(&self.file) {
            Ok(content) if self.is_known(&content) => None,
            Ok(content) => match self.write(&content).await {
                Ok(changed) => {
                    if changed {
                        tracing::info!(name = self.name, "the pull secret was written");
                    }
                    self.written = Some((content, Instant::now()));
                    None
                }
                // Another replica wrote the Secret first; the next round compares again.
                Err(ApiError::Conflict(_)) => None,
                Err(error) => Some(with_causes(&error)),
            },
            Err(error) => Some(format!("{}: {error}", self.file.display())),
        };
        if let Some(why) = &error
            && self.logged_error != error
        {
            tracing::warn!(
                name = self.name,
                "cannot keep the pull secret in step: {why}"
            );
        }
        self.logged_error = error;
    }

    fn is_known(&self, content: &[u8]) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|(known, at)| known == content && at.elapsed() < COMPARE_EVERY)
    }

    /// Writes the Secret if its content differs; returns whether it wrote.
    async fn write(&self, content: &[u8]) -> Result<bool, ApiError> {
        let content = ByteString(content.to_owned());
        let Some(mut found) = with_timeout(self.secrets.get_opt(&self.name)).await? else {
            return self.create(content).await;
        };
        if found.type_.as_deref() != Some(KIND) {
            // The type of a Secret is immutable.
            self.delete(found.metadata.uid).await?;
            return self.create(content).await;
        }
        let data = found.data.get_or_insert_default();
        if data.get(KEY) == Some(&content) {
            return Ok(false);
        }
        data.insert(KEY.to_owned(), content);
        let replaced = with_timeout(self.secrets.replace(&self.name, &post(), &found)).await;
        replaced.map(|_| true)
    }

    async fn create(&self, content: ByteString) -> Result<bool, ApiError> {
        let wanted = Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            type_: Some(KIND.to_owned()),
            data: Some(BTreeMap::from([(KEY.to_owned(), content)])),
            ..Secret::default()
        };
        let created = with_timeout(self.secrets.create(&post(), &wanted)).await;
        created.map(|_| true)
    }

    async fn delete(&self, uid: Option<String>) -> Result<(), ApiError> {
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid,
            resource_version: None,
        });
        match with_timeout(self.secrets.delete(&self.name, &parameters)).await {
            Ok(_) | Err(ApiError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
