//! Changes under load: templates, settings and the runner itself are replaced, and no call fails.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{
    Load, Runner, Stage, configure_pods, connect, evaluate_within, eventually, function_pod_uids,
    function_pods, install_definitions, on_cluster, resource_list,
};
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use runner_cluster::objects::FunctionConfig;
use runner_core::Reason;
use serde_json::{Value, json};

const CALLERS: usize = 8;

/// Waits until all pods are as wanted and none of them existed before.
async fn replaced(stage: &Stage, before: &[String], wanted: impl Fn(&Pod) -> bool) {
    eventually("other pods alone", async || {
        let pods = function_pods(stage).await;
        let new = |pod: &Pod| pod.uid().is_some_and(|uid| !before.contains(&uid));
        !pods.is_empty() && pods.iter().all(|pod| new(pod) && wanted(pod))
    })
    .await;
}

async fn change<K>(objects: Api<K>, name: &str, change: Value)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let changed = objects
        .patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await;
    changed.unwrap();
}

#[test]
fn a_changed_template_replaces_the_pods_and_no_call_fails() {
    on_cluster(async |stage| {
        let runner =
            Runner::start_with_announcements(&stage, &["--max-parallel-pods-per-function=2"]).await;
        let load = Load::start(CALLERS, &runner.address(), &stage.image("functions/count"));
        load.wait_for_answers(50).await;
        let before = function_pod_uids(&stage).await;
        let team = json!({"template": {"metadata": {"annotations": {"team": "blue"}}}});
        change(stage.api::<PodTemplate>(), "base-pod-template", team).await;
        let blue = |pod: &Pod| pod.annotations().contains_key("team");
        replaced(&stage, &before, blue).await;
        load.wait_for_answers(50).await;
        load.stop_without_failures().await;
    });
}

#[test]
fn a_changed_function_config_replaces_the_pods_and_no_call_fails() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let image = stage.image("functions/count");
        let pods = json!({"maxParallelExecutions": 1, "timeToLive": "10m"});
        configure_pods(&stage, "count", pods).await;
        let configs = stage.api::<FunctionConfig>();
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let load = Load::start(CALLERS, &runner.address(), &image);
        load.wait_for_answers(50).await;
        let before = function_pod_uids(&stage).await;
        assert_eq!(before.len(), 1);

        // A change of the pod's content replaces the pod.
        let colour = json!({"container": {"env": [{"name": "COLOUR", "value": "blue"}]}});
        let edit = json!({"spec": {"podExecutor": {"templateOverrides": colour}}});
        change(configs.clone(), "count", edit).await;
        let blue = |pod: &Pod| {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut env = containers.flat_map(|container| container.env.iter().flatten());
            env.any(|variable| variable.name == "COLOUR")
        };
        replaced(&stage, &before, blue).await;
        let after = function_pod_uids(&stage).await;

        // A change of the number of pods keeps the pod and adds others.
        let edit = json!({"spec": {"podExecutor": {"maxParallelExecutions": 2}}});
        change(configs, "count", edit).await;
        eventually("a second pod", async || {
            let now = function_pod_uids(&stage).await;
            now.len() == 2 && after.iter().all(|uid| now.contains(uid))
        })
        .await;
        load.wait_for_answers(50).await;
        load.stop_without_failures().await;
    });
}

#[test]
fn a_draining_runner_completes_the_calls_that_it_accepted() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/wait");
        let list = resource_list(&[("seconds", "0.2")], 1);
        let load = Load::start_with(20, &runner.address(), &image, &list);
        load.wait_for_answers(20).await;
        let before = function_pod_uids(&stage).await;
        // One call is running in a pod, and another one waits for a pod that does not exist yet.
        let waits = begin(&runner, &stage.image("functions/count"));
        eventually("a pod for it", async || {
            function_pod_uids(&stage).await.len() > before.len()
        })
        .await;
        runner.terminate();
        waits.await.unwrap().unwrap();
        let refused = load.wait_for_failures().await;
        assert_eq!(refused.len(), 20);
        for status in &refused {
            let refused = status.code() == tonic::Code::Unavailable
                && runner_proto::status::decode(status).reason() == Reason::Draining;
            assert!(refused || never_sent(status), "{status:?}");
        }
        assert!(runner.ended().await.success());
        let after = function_pod_uids(&stage).await;
        assert!(before.iter().all(|uid| after.contains(uid)));
    });
}

/// Returns whether the call met a closed port or a connection that was just closed.
///
/// The runner never received such a call, and a client with another runner retries there.
fn never_sent(status: &tonic::Status) -> bool {
    let text = format!("{status:?}");
    text.contains("Connection refused") || text.contains("hyper::Error(Canceled")
}

fn begin(runner: &Runner, image: &str) -> tokio::task::JoinHandle<Result<(), tonic::Status>> {
    let (address, image) = (runner.address(), image.to_owned());
    tokio::spawn(async move {
        let mut client = connect(&address).unwrap();
        let patience = Duration::from_secs(20);
        let answer = evaluate_within(patience, &mut client, &image, resource_list(&[], 1)).await;
        answer.map(drop)
    })
}
