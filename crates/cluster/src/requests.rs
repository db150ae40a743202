//! Carries out the pool's actions as requests to the API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use runner_pool::{Delete, Extension, Uid};
use serde_json::json;

use crate::{
    ApiError, PodObservation, RECLAIM_AFTER, ServiceObservation, names::FIELD_MANAGER, observe,
};

/// Time limit of one request to the API server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client for the pods and services of the pod namespace.
#[derive(Clone)]
pub struct Cluster {
    pods: Api<Pod>,
    services: Api<Service>,
}

/// The result of a request to create a pod.
#[derive(Debug)]
pub enum CreateOutcome {
    /// The API server created the pod.
    Created {
        /// UID of the new pod.
        uid: Uid,
        /// First resourceVersion of the new pod.
        resource_version: String,
    },
    /// The name is taken by the pod given here.
    NameTaken(Box<PodObservation>),
    /// The pod was not created.
    Failed(ApiError),
}

/// The result of a request to delete a pod.
#[derive(Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The API server accepted the deletion; the watch shows when the pod is gone.
    Accepted,
    /// The pod no longer existed.
    Gone,
    /// The pod changed after it was observed, so it was not deleted.
    Conflict,
    /// The pod was not deleted.
    Failed(ApiError),
}

// === impl Cluster ===

impl Cluster {
    /// Returns a client for the function pods and services in `namespace`.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            pods: Api::namespaced(client.clone(), namespace),
            services: Api::namespaced(client, namespace),
        }
    }

    /// Creates a pod, or returns the existing pod of the same name.
    pub async fn create_pod(&self, pod: &Pod) -> CreateOutcome {
        match with_timeout(self.pods.create(&post(), pod)).await {
            Ok(made) => match (made.metadata.uid, made.metadata.resource_version) {
                (Some(uid), Some(resource_version)) => CreateOutcome::Created {
                    uid: uid.into(),
                    resource_version,
                },
                _ => CreateOutcome::Failed(ApiError::Temporary(
                    "the API server's answer has no uid".to_owned(),
                )),
            },
            Err(ApiError::Conflict(why)) => self.find_existing(pod, why).await,
            Err(error) => CreateOutcome::Failed(error),
        }
    }

    /// Returns the pod that the API server would store, without creating it.
    ///
    /// # Errors
    /// Fails if the API server refuses the pod or does not answer.
    pub async fn dry_run(&self, pod: &Pod) -> Result<Pod, ApiError> {
        let parameters = PostParams {
            dry_run: true,
            ..post()
        };
        with_timeout(self.pods.create(&parameters, pod)).await
    }

    /// Returns the pod that has the name of a new pod; `why` is the message of the conflict.
    async fn find_existing(&self, pod: &Pod, why: String) -> CreateOutcome {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match with_timeout(self.pods.get(name)).await {
            Ok(found) => match observe(&found) {
                Some(pod) => CreateOutcome::NameTaken(Box::new(pod)),
                None => CreateOutcome::Failed(ApiError::Refused(format!(
                    "{why}, and that pod runs no function"
                ))),
            },
            // The pod was removed between the two requests: the next attempt finds the name free.
            Err(ApiError::NotFound(_)) => CreateOutcome::Failed(ApiError::Temporary(why)),
            Err(error) => CreateOutcome::Failed(error),
        }
    }

    /// Creates a service; returns `None` if a service of that name exists.
    ///
    /// The existing service is as good: it was made for the same slot.
    pub async fn create_service(
        &self,
        service: &Service,
    ) -> Result<Option<ServiceObservation>, ApiError> {
        match with_timeout(self.services.create(&post(), service)).await {
            Ok(made) => Ok(ServiceObservation::of(&made)),
            Err(ApiError::Conflict(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a pod if its UID and resourceVersion are still the observed ones.
    pub async fn delete_pod(&self, delete: &Delete) -> DeleteOutcome {
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: Some(delete.uid.as_str().to_owned()),
            resource_version: Some(delete.resource_version.as_ref().to_owned()),
        });
        match with_timeout(self.pods.delete(delete.name.as_str(), &parameters)).await {
            Ok(_) => DeleteOutcome::Accepted,
            Err(ApiError::NotFound(_)) => DeleteOutcome::Gone,
            Err(ApiError::Conflict(_)) => DeleteOutcome::Conflict,
            Err(error) => DeleteOutcome::Failed(error),
        }
    }

    /// Deletes a service if its UID is still the observed one.
    pub async fn delete_service(&self, service: &ServiceObservation) -> Result<(), ApiError> {
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: Some(service.uid.clone()),
            resource_version: None,
        });
        match with_timeout(self.services.delete(&service.name, &parameters)).await {
            Ok(_) | Err(ApiError::NotFound(_) | ApiError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes the annotation [`RECLAIM_AFTER`] of a pod if its UID is still the observed one.
    pub async fn extend(&self, extension: &Extension) -> Result<(), ApiError> {
        let patch = json!({"metadata": {
            // The patch fails with a conflict if the pod has another UID.
            "uid": extension.uid.as_str(),
            "annotations": {RECLAIM_AFTER: extension.reclaim_after.unix_secs().to_string()},
        }});
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let name = extension.name.as_str();
        match with_timeout(
            self.pods
                .patch_metadata(name, &parameters, &Patch::Merge(patch)),
        )
        .await
        {
            Ok(_) | Err(ApiError::NotFound(_) | ApiError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Waits for an answer of the API server, at most [`TIMEOUT`].
pub(crate) async fn with_timeout<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::timed_out(TIMEOUT)),
    }
}

#[cfg(test)]
mod tests;
