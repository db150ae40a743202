//! The function pods and services of a runner, as the cluster shows them.

use k8s_openapi::api::core::v1::{Pod, PodTemplate, Service};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Stage, eventually};

/// Flags with which wrappers can send announcements: the node's address and any free port.
pub const ANNOUNCE_FLAGS: [&str; 2] = ["--announce-address=198.18.255.254", "--announce-port=0"];

/// Returns the function pods of the stage.
pub async fn function_pods(stage: &Stage) -> Vec<Pod> {
    let labelled = ListParams::default().labels("fn.kpt.dev/image");
    let list = stage.api::<Pod>().list(&labelled).await;
    list.expect("pods can be listed").items
}

/// Returns the sorted uids of the function pods.
pub async fn function_pod_uids(stage: &Stage) -> Vec<String> {
    let mut uids: Vec<_> = function_pods(stage)
        .await
        .iter()
        .filter_map(ResourceExt::uid)
        .collect();
    uids.sort();
    uids
}

/// Returns the services of function pods, of any origin.
pub async fn function_services(stage: &Stage) -> Vec<Service> {
    let list = stage.api::<Service>().list(&ListParams::default()).await;
    let mut services = list.expect("services can be listed").items;
    services.retain(|service| {
        let selector = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| selector.contains_key("fn.kpt.dev/image"))
    });
    services
}

/// Waits until the stage has no function pods and no services of function pods.
pub async fn wait_for_no_pods_and_services(stage: &Stage) {
    eventually("neither pod nor service", async || {
        function_pods(stage).await.is_empty() && function_services(stage).await.is_empty()
    })
    .await;
}

/// Returns the name of a function pod's service.
///
/// # Panics
///
/// If the pod has no label with its slot.
#[must_use]
pub fn service_of(pod: &Pod) -> &str {
    let slot = pod.labels().get("fn.kpt.dev/image");
    slot.expect("a function pod is labelled with its slot")
}

/// Returns whether the kubelet reports a pod as ready.
#[must_use]
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the id of a pod's function container if it runs.
#[must_use]
pub fn function_container(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let function = containers.iter().find(|known| known.name == "function")?;
    function.state.as_ref()?.running.as_ref()?;
    function.container_id.clone()
}

/// Waits for a pod that runs an evaluation, and returns it with its container.
///
/// `program` is a program that the function runs only during an evaluation.
pub async fn busy_pod(stage: &Stage, program: &str) -> (Pod, String) {
    let mut found = None;
    eventually("a pod that runs the function", async || {
        for pod in function_pods(stage).await {
            if let Some(container) = function_container(&pod)
                && matches!(stage.bed().runs_in_container(&container, program), Ok(true))
            {
                found = Some((pod, container));
            }
        }
        found.is_some()
    })
    .await;
    found.expect("a busy pod")
}

/// Deletes a pod without a grace period.
pub async fn delete_without_grace_period(stage: &Stage, pod: &Pod) {
    let at_once = DeleteParams::default().grace_period(0);
    let deleted = stage.api::<Pod>().delete(&pod.name_any(), &at_once).await;
    deleted.expect("the pod can be deleted");
}

/// Stores an operator's pod template before the runner stores its default, and returns its version.
///
/// The template is the default with additions to the pod's `spec` and to its function `container`.
pub async fn store_template(stage: &Stage, spec: Value, container: Value) -> String {
    let mount = json!([{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}]);
    // For an image without a tag, `Always` would count as Kubernetes' default instead of the test's
    // choice.
    let placeholder = "replaced:v1";
    let mut function = json!({
        "name": "function", "image": placeholder, "volumeMounts": mount,
        "command": ["/wrapper-server-tools/wrapper-server"],
    });
    extend(&mut function, container);
    let mut template = json!({
        "terminationGracePeriodSeconds": 1,
        "initContainers": [{
            "name": "copy-wrapper-server", "image": placeholder, "volumeMounts": mount,
            "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"],
        }],
        "containers": [function],
        "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
    });
    extend(&mut template, spec);
    let template =
        json!({"metadata": {"name": "base-pod-template"}, "template": {"spec": template}});
    let template: PodTemplate = serde_json::from_value(template).expect("a template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    let stored = stored.expect("the API server accepts the template");
    stored
        .resource_version()
        .expect("a stored object has a version")
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
