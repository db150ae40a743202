//! Takeover from the Go runner and rollback to it, with pods and services shaped as it makes them.
//!
//! The Go runner names pods by the slot and a suffix of the API server's, stamps them with the
//! PodTemplate's resourceVersion alone and writes no `reclaim-after`. When it starts, it adopts the
//! labelled pods that carry that version, finds their services by the label, and creates warm pods
//! under the slot's name itself.

use e2e::{
    FunctionPod, Load, Runner, Stage, connect, define, evaluate, eventually, function_pod_uids,
    function_pods, function_services, on_cluster, resource_list, store_template,
};
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use runner_config::objects::ServiceTemplate;
use serde_json::json;

const LABEL: &str = "fn.kpt.dev/image";
const TEMPLATE_VERSION: &str = "fn.kpt.dev/template-version";
const CALLERS: usize = 8;
/// Short, so that unused pods are removed while the test looks.
const FLAGS: [&str; 2] = ["--pod-ttl=8s", "--scan-interval=1s"];

/// The slot of the count function's first pod, as every runner names it.
fn slot(stage: &Stage) -> String {
    let pinned = stage.bed().pinned_image("functions/count");
    let pinned = pinned.expect("the image was pushed");
    let (_, digest) = pinned.split_once("@sha256:").expect("a digest");
    format!("count-v1-1-{}", &digest[..8])
}

async fn store_service_template(stage: &Stage) {
    let template: ServiceTemplate = serde_json::from_value(json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template"},
        "template": {"spec": {"type": "ClusterIP", "ports": [
            {"port": 9446, "targetPort": 9446, "protocol": "TCP", "name": "server"},
        ]}},
    }))
    .expect("a service template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    stored.expect("the cluster takes the template");
}

/// Creates a pod as the Go runner does and returns its uid.
async fn go_pod(stage: &Stage, template: &str) -> String {
    let image = stage.image("functions/count");
    let slot = slot(stage);
    let entrypoint = ["/function.sh"];
    let annotations = [
        (TEMPLATE_VERSION, template),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
    ];
    let pod = FunctionPod::create_as_go_runner(stage, &slot, &image, &entrypoint, &annotations);
    let pod = pod.await;
    pod.ready().await.uid().expect("a pod has a uid")
}

/// Deletes a pod as the Go runner does, with its usual time to end.
async fn delete(stage: &Stage, pod: &Pod) {
    let pods = stage.api::<Pod>();
    let deleted = pods.delete(&pod.name_any(), &DeleteParams::default()).await;
    deleted.expect("the pod can be deleted");
}

async fn service_names(stage: &Stage) -> Vec<String> {
    let services = function_services(stage).await;
    services.iter().map(ResourceExt::name_any).collect()
}

/// The Go runner's pod is used from the first call on, and its objects are removed in the end.
fn takes_over(pod_template_first: bool) {
    on_cluster(async |stage| {
        define(&stage).await;
        if !pod_template_first {
            store_service_template(&stage).await;
        }
        let template = store_template(&stage, json!({}), json!({})).await;
        if pod_template_first {
            store_service_template(&stage).await;
        }
        let left = go_pod(&stage, &template).await;
        let runner = Runner::start_at_home(&stage, &FLAGS).await;
        let load = Load::start(CALLERS, &runner.address(), &stage.image("functions/count"));
        load.goes_on(100).await;
        load.ends_well().await;
        assert_eq!(function_pod_uids(&stage).await, [left]);
        assert_eq!(service_names(&stage).await, [slot(&stage)]);
        nothing_stays(&stage).await;
    });
}

async fn nothing_stays(stage: &Stage) {
    eventually("neither pod nor service", async || {
        function_pods(stage).await.is_empty() && function_services(stage).await.is_empty()
    })
    .await;
}

#[test]
fn adopts_a_pod_whose_pod_template_is_older_than_the_service_template() {
    takes_over(true);
}

#[test]
fn adopts_a_pod_whose_pod_template_is_newer_than_the_service_template() {
    takes_over(false);
}

#[test]
fn removes_a_pod_of_an_outdated_template_that_nobody_uses() {
    on_cluster(async |stage| {
        define(&stage).await;
        store_template(&stage, json!({}), json!({})).await;
        go_pod(&stage, "1").await;
        let _runner = Runner::start_at_home(&stage, &FLAGS).await;
        nothing_stays(&stage).await;
    });
}

#[test]
fn leaves_alone_a_pod_that_the_go_runner_starts_beside_it() {
    on_cluster(async |stage| {
        define(&stage).await;
        let template = store_template(&stage, json!({}), json!({})).await;
        let runner = Runner::start_at_home(&stage, &["--scan-interval=1s"]).await;
        let image = stage.image("functions/count");
        let load = Load::start(2, &runner.address(), &image);
        load.goes_on(10).await;
        // The Go runner removes the pods of a slot before it creates its own.
        for pod in function_pods(&stage).await {
            delete(&stage, &pod).await;
        }
        let theirs = go_pod(&stage, &template).await;
        load.goes_on(100).await;
        load.ends_well().await;
        assert!(function_pod_uids(&stage).await.contains(&theirs));
        assert!(service_names(&stage).await.contains(&slot(&stage)));
    });
}

/// A runner's pods after its end, as the Go runner finds them when it starts.
#[test]
fn leaves_pods_that_the_go_runner_can_adopt_and_replace() {
    on_cluster(async |stage| {
        define(&stage).await;
        let runner = Runner::start_at_home(&stage, &[]).await;
        let mut client = connect(&runner.address()).expect("an address");
        let image = stage.image("functions/count");
        let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        answer.expect("the function answers");
        assert!(runner.stop().await.success());

        let template = stage.api::<PodTemplate>().get("base-pod-template").await;
        let template = template.expect("the runner stores its template");
        let pods = function_pods(&stage).await;
        assert_eq!(pods.len(), 1);
        let pod = &pods[0];
        let slot = slot(&stage);
        assert_eq!(pod.labels().get(LABEL), Some(&slot));
        assert_eq!(
            pod.annotations().get(TEMPLATE_VERSION),
            template.metadata.resource_version.as_ref()
        );
        let containers = &pod.spec.as_ref().expect("a spec").containers;
        assert_eq!(containers[0].name, "function");
        assert_eq!(service_names(&stage).await, [slot.as_str()]);

        // A warm pod of the Go runner has the slot's name and is created while the pod it replaces
        // still ends.
        delete(&stage, pod).await;
        let entrypoint = ["/function.sh"];
        let version = template.metadata.resource_version.unwrap_or_default();
        let annotations = [(TEMPLATE_VERSION, version.as_str())];
        let create = FunctionPod::create_as_go_runner_warms_up;
        let theirs = create(&stage, &slot, &image, &entrypoint, &annotations).await;
        theirs.ready().await;
    });
}
