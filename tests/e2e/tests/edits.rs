//! Edits of a FunctionConfig whose function has a pod: the pod follows, and no call fails.

use std::time::{Duration, SystemTime};

use e2e::{
    Load, Runner, configure_pods, define, eventually, function_pods, function_services, is_ready,
    on_cluster,
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

/// The memory limits of what brings the wrapper and of the function.
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
fn edited_resources_make_a_new_pod_and_nobody_notices() {
    on_cluster(async |stage| {
        define(&stage).await;
        configure_pods(&stage, "count", with_memory("32Mi", "48Mi")).await;
        let runner = Runner::start_at_home(&stage, &[]).await;
        runner.serving().await;
        let load = Load::start(4, &runner.address(), &stage.image("functions/count"));
        load.goes_on(20).await;
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
        load.goes_on(20).await;
        load.ends_well().await;
    });
}

/// How long the cluster says that the pod is kept from now on.
fn kept(pod: &Pod) -> Option<Duration> {
    let until = pod.annotations().get("fn.kpt.dev/reclaim-after")?;
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(until.parse().ok()?);
    until.duration_since(SystemTime::now()).ok()
}

#[test]
fn a_shortened_time_to_live_lets_an_idle_pod_go() {
    on_cluster(async |stage| {
        define(&stage).await;
        let tags = ["v1"];
        configure_pods(&stage, "count", json!({"tags": tags, "timeToLive": "30m"})).await;
        let _runner = Runner::start_at_home(&stage, &["--scan-interval=1s"]).await;
        let mut warm = Vec::new();
        eventually("a warm pod", async || {
            warm = function_pods(&stage).await;
            warm.first().is_some_and(is_ready)
        })
        .await;
        let promised = kept(&warm[0]).expect("an annotation");
        assert!(promised > Duration::from_secs(25 * 60), "{promised:?}");

        configure_pods(&stage, "count", json!({"tags": tags, "timeToLive": "3s"})).await;
        eventually("neither pod nor service", async || {
            function_pods(&stage).await.is_empty() && function_services(&stage).await.is_empty()
        })
        .await;
    });
}
