//! Pods that runners of the time before this one left behind: used where they are right, replaced
//! where they are not, and never left over. Their services carry no label, and their images may
//! name no digest.

use std::time::{Duration, SystemTime};

use e2e::{
    FunctionPod, Runner, Stage, connect, define, evaluate, eventually, function_pod_uids,
    function_pods, function_services, on_cluster, resource_list, store_template,
};
use kube::api::PostParams;
use runner_config::objects::ServiceTemplate;
use serde_json::json;

/// Short, so that what is not used goes while the test looks.
const FLAGS: [&str; 2] = ["--pod-ttl=8s", "--scan-interval=1s"];

/// What a pod of an earlier runner was made from.
struct Predecessor {
    template: String,
    names_digest: bool,
    term: Duration,
}

// === impl Predecessor ===

impl Predecessor {
    /// Leaves a pod of the count function and its service behind, and returns the pod's uid.
    async fn leaves(&self, stage: &Stage) -> String {
        let image = stage.image("functions/count");
        let pinned = stage.bed().pinned_image("functions/count");
        let pinned = pinned.expect("the image was pushed");
        let (_, digest) = pinned.split_once("@sha256:").expect("a digest");
        let name = format!("count-v1-1-{}", &digest[..8]);
        let image = match self.names_digest {
            true => format!("{image}@sha256:{digest}"),
            false => image,
        };
        let until = SystemTime::now() + self.term;
        let until = until.duration_since(SystemTime::UNIX_EPOCH);
        let until = until.expect("a time after 1970").as_secs().to_string();
        let annotations = [
            ("fn.kpt.dev/template-version", self.template.as_str()),
            ("fn.kpt.dev/reclaim-after", until.as_str()),
            ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
        ];
        let entrypoint = ["/function.sh"];
        let pod =
            FunctionPod::create_as_go_runner(stage, &name, &image, &entrypoint, &annotations).await;
        let uid = pod.ready().await.metadata.uid;
        uid.expect("a pod has a uid")
    }
}

async fn count(stage: &Stage, runner: &Runner) {
    let mut client = connect(&runner.address()).expect("an address");
    let image = stage.image("functions/count");
    let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
    answer.expect("the function answers");
}

async fn store_service_template(stage: &Stage) {
    define(stage).await;
    let template: ServiceTemplate = serde_json::from_value(json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template"},
        "template": {"spec": {"type": "ClusterIP"}},
    }))
    .expect("a service template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    stored.expect("the cluster takes the template");
}

async fn nothing_stays(stage: &Stage) {
    eventually("neither pod nor service", async || {
        function_pods(stage).await.is_empty() && function_services(stage).await.is_empty()
    })
    .await;
}

/// A pod that is right serves, whichever of the two templates is newer, and keeps its service.
fn is_adopted(names_digest: bool, service_template_first: bool) {
    on_cluster(async |stage| {
        if service_template_first {
            store_service_template(&stage).await;
        }
        let template = store_template(&stage, json!({}), json!({})).await;
        if !service_template_first {
            store_service_template(&stage).await;
        }
        let predecessor = Predecessor {
            template,
            names_digest,
            term: Duration::from_secs(60),
        };
        let left = predecessor.leaves(&stage).await;
        let runner = Runner::start_at_home(&stage, &FLAGS).await;
        count(&stage, &runner).await;
        assert_eq!(function_pod_uids(&stage).await, [left]);
        assert_eq!(function_services(&stage).await.len(), 1);
    });
}

#[test]
fn a_pod_whose_image_names_a_digest_is_adopted() {
    is_adopted(true, true);
}

#[test]
fn a_pod_whose_image_names_no_digest_is_adopted() {
    is_adopted(false, true);
}

#[test]
fn a_pod_is_adopted_though_the_service_template_is_newer() {
    is_adopted(false, false);
}

#[test]
fn a_pod_of_an_older_template_is_replaced() {
    on_cluster(async |stage| {
        let predecessor = Predecessor {
            template: "1".to_owned(),
            names_digest: false,
            term: Duration::from_secs(600),
        };
        let left = predecessor.leaves(&stage).await;
        let runner = Runner::start_at_home(&stage, &FLAGS).await;
        eventually("a pod of this template alone", async || {
            count(&stage, &runner).await;
            let now = function_pod_uids(&stage).await;
            now.len() == 1 && !now.contains(&left)
        })
        .await;
        nothing_stays(&stage).await;
    });
}

#[test]
fn a_pod_that_nobody_calls_goes_when_its_time_has_come() {
    on_cluster(async |stage| {
        let predecessor = Predecessor {
            template: "1".to_owned(),
            names_digest: false,
            term: Duration::from_secs(5),
        };
        predecessor.leaves(&stage).await;
        let _runner = Runner::start_at_home(&stage, &FLAGS).await;
        nothing_stays(&stage).await;
    });
}

#[test]
fn a_raised_message_limit_reaches_the_pods_of_a_function() {
    on_cluster(async |stage| {
        let runner = Runner::start_at_home(&stage, &[]).await;
        count(&stage, &runner).await;
        assert!(runner.stop().await.success());
        let before = function_pod_uids(&stage).await;
        let runner = Runner::start_at_home(&stage, &["--max-request-body-size=20971520"]).await;
        count(&stage, &runner).await;
        let mut pods = function_pods(&stage).await;
        pods.retain(|pod| !before.contains(&pod.metadata.uid.clone().unwrap_or_default()));
        assert_eq!(pods.len(), 1, "a pod of its own");
        let spec = pods[0].spec.as_ref().expect("a spec");
        let args = spec.containers.iter().flat_map(|container| &container.args);
        assert!(args.flatten().any(|arg| arg == "20971520"));
    });
}
