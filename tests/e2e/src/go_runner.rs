//! The Go runner's part in takeovers and rollbacks: pods as it creates them, and its steps on the
//! cluster at its start and when a function is called.
//!
//! The test bed has no Go runner. Its steps are repeated here one by one, and every state that it
//! reports as an error fails the test.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{Endpoints, Pod, PodTemplate};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use runner_cluster::objects::ServiceTemplate;
use serde_json::json;

use crate::{FunctionPod, Stage, eventually, function_pods};

const COUNT: &str = "functions/count";
const ENTRYPOINT: [&str; 1] = ["/function.sh"];
const IMAGE_LABEL: &str = "fn.kpt.dev/image";
const TEMPLATE_VERSION: &str = "fn.kpt.dev/template-version";
const RECLAIM_AFTER: &str = "fn.kpt.dev/reclaim-after";
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// Settings of a pod of the count function that the Go runner made.
pub struct GoPod {
    /// Value of the annotation with the template's version.
    template: String,
    /// Whether the pod names its image by tag and digest instead of by tag alone.
    names_digest: bool,
    /// Time from now until the annotation of older Go runners allows to remove the pod.
    reclaim_after: Option<Duration>,
}

/// The occasion on which the Go runner creates a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOccasion {
    /// A call: the API server adds a suffix to the slot's name.
    Call,
    /// Warm-up: the pod has the slot's name.
    WarmUp,
}

// === impl GoPod ===

impl GoPod {
    /// Returns the settings of today's Go runner, with this version of the PodTemplate.
    #[must_use]
    pub fn of_template(version: &str) -> Self {
        Self {
            template: version.to_owned(),
            names_digest: false,
            reclaim_after: None,
        }
    }

    /// Names the image by tag and digest.
    #[must_use]
    pub fn with_digest(mut self) -> Self {
        self.names_digest = true;
        self
    }

    /// Adds the annotation of older Go runners that allows to remove the pod after this time.
    #[must_use]
    pub fn reclaimable_after(mut self, time: Duration) -> Self {
        self.reclaim_after = Some(time);
        self
    }

    /// Creates the pod, and its Service if there is none.
    pub async fn create(&self, stage: &Stage, occasion: GoOccasion) -> FunctionPod {
        let image = match self.names_digest {
            true => pinned(stage),
            false => stage.image(COUNT),
        };
        let until = self.reclaim_after.map(|time| {
            let until = (SystemTime::now() + time).duration_since(SystemTime::UNIX_EPOCH);
            until.expect("a time after 1970").as_secs().to_string()
        });
        let mut annotations = vec![
            (TEMPLATE_VERSION, self.template.as_str()),
            (SAFE_TO_EVICT, "true"),
        ];
        annotations.extend(until.as_deref().map(|until| (RECLAIM_AFTER, until)));
        let slot = count_slot(stage);
        let create = FunctionPod::create_as_go_runner;
        create(stage, &slot, &image, &ENTRYPOINT, &annotations, occasion).await
    }
}

/// Returns the name of the first slot of the count function, which is the same for all runners.
#[must_use]
pub fn count_slot(stage: &Stage) -> String {
    let pinned = pinned(stage);
    let (_, digest) = pinned.split_once("@sha256:").expect("a digest");
    format!("count-v1-1-{}", &digest[..8])
}

/// Stores the ServiceTemplate that Porch ships; the cluster must have its definition.
pub async fn store_service_template(stage: &Stage) {
    let template: ServiceTemplate = serde_json::from_value(json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template"},
        "template": {"spec": {"type": "ClusterIP", "ports": [
            {"port": 9446, "targetPort": 9446, "protocol": "TCP", "name": "server"},
        ]}},
    }))
    .expect("a service template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    stored.expect("the API server accepts the template");
}

/// Returns the version that the Go runner compares pods with, which is that of the PodTemplate.
pub async fn pod_template_version(stage: &Stage) -> String {
    let template = stage.api::<PodTemplate>().get("base-pod-template").await;
    let version = template.expect("the template is stored").resource_version();
    version.expect("a stored object has a version")
}

/// Returns the pods that the Go runner adopts at its start: those that are not being deleted and
/// whose annotation equals the version of the PodTemplate.
pub async fn pods_adopted_by_go_runner(stage: &Stage) -> Vec<Pod> {
    let version = pod_template_version(stage).await;
    let mut pods = function_pods(stage).await;
    pods.retain(|pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.annotations().get(TEMPLATE_VERSION) == Some(&version)
    });
    pods
}

/// Deletes the pods of the count function's slot as the Go runner does before it creates its own.
///
/// They get their usual grace period, and their end is not awaited.
pub async fn delete_slot_as_go_runner(stage: &Stage) {
    let pods = stage.api::<Pod>();
    let slot = format!("{IMAGE_LABEL}={}", count_slot(stage));
    let listed = pods.list(&ListParams::default().labels(&slot)).await;
    for pod in listed.expect("pods can be listed") {
        if pod.metadata.deletion_timestamp.is_none() {
            let deleted = pods.delete(&pod.name_any(), &DeleteParams::default()).await;
            deleted.expect("the pod can be deleted");
        }
    }
}

/// Replaces the pods of the count function's slot as the Go runner does.
///
/// Returns its pod after the slot's Service has it as an endpoint.
///
/// # Panics
///
/// If the Endpoints of the Service have any other address after the pod is ready: the Go runner
/// then fails the call or deletes the oldest pod of the slot.
pub async fn replace_slot_as_go_runner(stage: &Stage, occasion: GoOccasion) -> FunctionPod {
    delete_slot_as_go_runner(stage).await;
    let version = pod_template_version(stage).await;
    let pod = GoPod::of_template(&version).create(stage, occasion).await;
    let status = pod.reported_ready().await.status;
    let address = status.and_then(|status| status.pod_ip);
    let address = address.expect("a ready pod has an address");
    let slot = count_slot(stage);
    eventually("an endpoint of the Service", async || {
        let addresses = endpoints(stage, &slot).await;
        if !addresses.is_empty() {
            assert_eq!(addresses, [address.as_str()], "the pod's address alone");
        }
        !addresses.is_empty()
    })
    .await;
    pod.ready().await;
    pod
}

/// Returns the ready addresses of a Service.
async fn endpoints(stage: &Stage, service: &str) -> Vec<String> {
    let endpoints = stage.api::<Endpoints>().get_opt(service).await;
    let endpoints = endpoints.expect("endpoints can be read");
    let subsets = endpoints.and_then(|endpoints| endpoints.subsets);
    let addresses = subsets.into_iter().flatten();
    let addresses = addresses.flat_map(|subset| subset.addresses.unwrap_or_default());
    addresses.map(|address| address.ip).collect()
}

fn pinned(stage: &Stage) -> String {
    let pinned = stage.bed().pinned_image(COUNT);
    pinned.expect("the image was pushed")
}
