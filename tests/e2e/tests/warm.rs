//! Warm-up: pods that exist before the first call.

use std::{fs, path::Path};

use e2e::{
    ANNOUNCE_FLAGS, Runner, Stage, configure_pods, connect, delete_without_grace_period, evaluate,
    eventually, function_pod_uids, function_pods, install_definitions, is_ready, on_cluster,
    resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use runner_proto::runner_status::Phase;
use serde_json::json;

/// Returns the sorted names of functions with a ready pod.
async fn warm(stage: &Stage) -> Vec<String> {
    let pods = function_pods(stage).await;
    let mut names: Vec<_> = pods
        .iter()
        .filter(|pod| is_ready(pod))
        .filter_map(image_of)
        .collect();
    names.sort();
    names
}

fn image_of(pod: &Pod) -> Option<String> {
    let containers = &pod.spec.as_ref()?.containers;
    let image = containers.first()?.image.as_deref()?;
    let name = image.split('@').next()?.rsplit('/').next()?;
    Some(name.to_owned())
}

fn write_cache_config(file: &Path, images: &[String]) {
    let lines: Vec<_> = images
        .iter()
        .map(|image| format!("- name: {image}\n"))
        .collect();
    let fresh = file.with_extension("fresh");
    fs::write(&fresh, lines.concat()).expect("the file can be written");
    fs::rename(fresh, file).expect("the file can be replaced");
}

/// Starts a runner whose configuration file names the count function, and waits for its pod.
async fn start_with_warm_count(stage: &Stage, file: &Path) -> Runner {
    write_cache_config(file, &[stage.image("functions/count")]);
    let flag = format!("--pod-cache-config={}", file.display());
    let runner = Runner::start_with_announcements(stage, &[&flag]).await;
    eventually("a warm function", async || {
        warm(stage).await == ["count:v1"]
    })
    .await;
    runner
}

#[test]
fn configured_functions_are_warm_from_the_start_and_when_they_are_added() {
    on_cluster(async |stage| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pod-cache-config.yaml");
        let _runner = start_with_warm_count(&stage, &file).await;
        let images = ["functions/count", "functions/set-label"].map(|name| stage.image(name));
        write_cache_config(&file, &images);
        eventually("two warm functions", async || {
            warm(&stage).await == ["count:v1", "set-label:v1"]
        })
        .await;
    });
}

#[test]
fn recreates_a_warm_pod_that_is_deleted() {
    on_cluster(async |stage| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pod-cache-config.yaml");
        let _runner = start_with_warm_count(&stage, &file).await;
        let before = function_pod_uids(&stage).await;
        for pod in function_pods(&stage).await {
            delete_without_grace_period(&stage, &pod).await;
        }
        eventually("another warm pod", async || {
            warm(&stage).await == ["count:v1"] && function_pod_uids(&stage).await != before
        })
        .await;
    });
}

#[test]
fn the_tags_of_a_function_config_are_warm() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let _runner = Runner::start_with_announcements(&stage, &[]).await;
        configure_pods(&stage, "count", json!({})).await;
        eventually("a warm function", async || {
            warm(&stage).await == ["count:v1"]
        })
        .await;
    });
}

#[test]
fn a_failed_warm_up_delays_neither_other_functions_nor_the_service() {
    on_cluster(async |stage| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pod-cache-config.yaml");
        let missing = stage.image("functions/no-such-function");
        let images = [
            missing.clone(),
            // No server has this address.
            "198.18.255.250:5000/functions/unreachable:v1".to_owned(),
            stage.image("functions/count"),
        ];
        write_cache_config(&file, &images);
        let flag = format!("--pod-cache-config={}", file.display());
        let runner = Runner::start_with_announcements(&stage, &[&flag]).await;
        runner.serving().await;
        eventually("the function that can be warm", async || {
            warm(&stage).await == ["count:v1"]
        })
        .await;
        eventually("what is degraded", async || {
            let degraded = runner.status().await.degraded;
            degraded.iter().any(|what| what.contains(&missing))
        })
        .await;
        assert_eq!(runner.status().await.phase(), Phase::Serving);
        let said = runner.log();
        let said = said.lines().filter(|line| line.contains("cannot warm up"));
        assert!(
            said.filter(|line| line.contains(&missing)).count() == 1,
            "it is said once"
        );
    });
}

#[test]
fn warm_up_can_be_turned_off() {
    on_cluster(async |stage| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pod-cache-config.yaml");
        write_cache_config(&file, &[stage.image("functions/set-label")]);
        let flag = format!("--pod-cache-config={}", file.display());
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            &flag,
            "--warm-up-pod-cache=false",
        ];
        let runner = Runner::start(&stage, &flags).await;
        // The call takes longer than a warm-up would need to begin.
        let mut client = connect(&runner.address()).expect("an address");
        let image = stage.image("functions/count");
        let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        answer.expect("the function answers");
        let pods = function_pods(&stage).await;
        let names: Vec<_> = pods.iter().filter_map(image_of).collect();
        assert_eq!(names, ["count:v1"]);
    });
}
