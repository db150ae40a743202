//! Edits of a FunctionConfig whose function has a pod: the pod is replaced, and no call fails.

use std::time::{Duration, SystemTime};

use e2e::{
    Load, Runner, configure_pods, eventually, function_pods, function_services,
    install_definitions, on_cluster,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

fn with_memory(wrapper: &str, function: &str) -> Value {
    json!({"templateOverrides": {
        "initContainer": {"resources": {"limits": {"memory": wrapper}}},
        "container": {"resources": {"limits": {"memory": function}}},
    }})
}

/// Returns the memory limits of the container that brings the wrapper and of the function.
fn memory(pod: &Pod) -> Vec<&str> {
    let spec = pod.spec.as_ref().expect("a spec");
    let init = spec.init_containers.iter().flatten();
    let limits = init.chain(&spec.containers).filter_map(|container| {
        let limits = container.resources.as_ref()?.limits.as_ref()?;
        Some(&*limits.get("memory")?.0)
    });
    limits.collect()
}

#[test]
fn edited_resources_replace_the_pod_and_no_call_fails() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        configure_pods(&stage, "count", with_memory("32Mi", "48Mi")).await;
        let runner = Runner::start_with_announcements(&stage, &["--wrapper-injection=init"]).await;
        runner.serving().await;
        let load = Load::start(4, &runner.address(), &stage.image("functions/count"));
        load.wait_for_answers(20).await;
        let before = function_pods(&stage).await.remove(0);
        assert_eq!(memory(&before), ["32Mi", "48Mi"]);

        configure_pods(&stage, "count", with_memory("40Mi", "64Mi")).await;
        let mut after = Vec::new();
        eventually("one pod, with the new limits", async || {
            after = function_pods(&stage).await;
            after.len() == 1 && memory(&after[0]) == ["40Mi", "64Mi"]
        })
        .await;
        assert_ne!(after[0].uid(), before.uid());
        load.wait_for_answers(20).await;
        load.stop_without_failures().await;
    });
}

/// Returns the remaining time in the pod's reclaim annotation.
fn kept(pod: &Pod) -> Option<Duration> {
    let until = pod.annotations().get("fn.kpt.dev/reclaim-after")?;
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(until.parse().ok()?);
    until.duration_since(SystemTime::now()).ok()
}

#[test]
fn a_shortened_time_to_live_applies_from_the_next_call_on() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        configure_pods(&stage, "count", json!({"timeToLive": "30m"})).await;
        let flags = ["--scan-interval=1s", "--warm-up-pod-cache=false"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        let load = Load::start(1, &runner.address(), &stage.image("functions/count"));
        load.wait_for_answers(1).await;
        load.stop_without_failures().await;
        let pods = function_pods(&stage).await;
        let promised = kept(&pods[0]).expect("an annotation");
        assert!(promised > Duration::from_secs(25 * 60), "{promised:?}");

        configure_pods(&stage, "count", json!({"timeToLive": "3s"})).await;
        eventually("a shorter promise", async || {
            let load = Load::start(1, &runner.address(), &stage.image("functions/count"));
            load.wait_for_answers(1).await;
            load.stop_without_failures().await;
            let pods = function_pods(&stage).await;
            kept(&pods[0]).is_none_or(|kept| kept < Duration::from_secs(60))
        })
        .await;
        eventually("neither pod nor service", async || {
            function_pods(&stage).await.is_empty() && function_services(&stage).await.is_empty()
        })
        .await;
    });
}
