//! The Secret function pods are pulled with, kept in step with the runner's docker config file.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, core::ObjectMeta};

use crate::{
    ApiError,
    act::{post, within},
};

const KIND: &str = "kubernetes.io/dockerconfigjson";
const KEY: &str = ".dockerconfigjson";
const EVERY: Duration = Duration::from_secs(10);

/// Copies the file into the Secret, now and whenever it changes, for ever. The Secret may be
/// created, read and updated; it is never listed or watched.
pub async fn keep_pull_secret(client: Client, namespace: String, name: String, file: PathBuf) {
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let mut written: Option<Vec<u8>> = None;
    let mut trouble = None;
    loop {
        let said = match fs::read(&file) {
            Ok(content) if written.as_ref() == Some(&content) => None,
            Ok(content) => match write(&secrets, &name, &content).await {
                Ok(()) => {
                    tracing::info!(name, "the pull secret is in step with its file");
                    written = Some(content);
                    None
                }
                Err(error) => Some(error.to_string()),
            },
            Err(error) => Some(format!("{}: {error}", file.display())),
        };
        if said.is_some() && said != trouble {
            let why = said.as_deref().unwrap_or_default();
            tracing::warn!(name, "cannot keep the pull secret in step: {why}");
        }
        trouble = said;
        tokio::time::sleep(EVERY).await;
    }
}

async fn write(secrets: &Api<Secret>, name: &str, content: &[u8]) -> Result<(), ApiError> {
    let wanted = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some(KIND.to_owned()),
        data: Some(BTreeMap::from([(
            KEY.to_owned(),
            ByteString(content.to_owned()),
        )])),
        ..Secret::default()
    };
    match within(secrets.get_opt(name)).await? {
        None => match within(secrets.create(&post(), &wanted)).await {
            // Another replica was faster; the next look compares.
            Ok(_) | Err(ApiError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        },
        Some(found) if found.data == wanted.data => Ok(()),
        Some(mut found) => {
            found.data = wanted.data;
            within(secrets.replace(name, &post(), &found))
                .await
                .map(|_| ())
        }
    }
}
