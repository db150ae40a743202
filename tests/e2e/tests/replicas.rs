//! Runners that share a cluster: successors and replicas use the same pods, and none removes a pod
//! that another one uses.

use e2e::{
    Load, Runner, Stage, connect, evaluate, eventually, function_pod_uids, function_pods,
    on_cluster, resource_list,
};
use kube::ResourceExt;

const COUNT: &str = "functions/count";

async fn count(stage: &Stage, runner: &Runner) {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 3)).await;
    answer.expect("the function answers");
}

#[test]
fn a_successor_adopts_the_pods_of_a_killed_runner() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &runner).await;
        let before = function_pod_uids(&stage).await;
        // Kills the runner with SIGKILL.
        drop(runner);
        let successor = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &successor).await;
        assert_eq!(function_pod_uids(&stage).await, before);
    });
}

#[test]
fn a_successor_adopts_a_pod_that_was_starting_when_its_runner_was_killed() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let (address, image) = (runner.address(), stage.image(COUNT));
        let call = tokio::spawn(async move {
            let mut client = connect(&address).expect("an address");
            evaluate(&mut client, &image, resource_list(&[], 1)).await
        });
        let mut before = Vec::new();
        eventually("a pod", async || {
            before = function_pod_uids(&stage).await;
            !before.is_empty()
        })
        .await;
        drop(runner);
        let lost = call.await.expect("the caller does not panic");
        lost.expect_err("his runner is gone");
        let successor = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &successor).await;
        assert_eq!(function_pod_uids(&stage).await, before);
    });
}

#[test]
fn a_successor_with_a_raised_message_limit_replaces_the_pods() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &runner).await;
        assert!(runner.stop().await.success());
        let before = function_pod_uids(&stage).await;
        let runner =
            Runner::start_with_announcements(&stage, &["--max-request-body-size=20971520"]).await;
        count(&stage, &runner).await;
        let mut pods = function_pods(&stage).await;
        pods.retain(|pod| !before.contains(&pod.uid().unwrap_or_default()));
        assert_eq!(pods.len(), 1, "a pod of its own");
        let spec = pods[0].spec.as_ref().expect("a spec");
        let args = spec.containers.iter().flat_map(|container| &container.args);
        assert!(args.flatten().any(|arg| arg == "20971520"));
        let client = connect(&runner.address()).expect("an address");
        let mut client = client.max_decoding_message_size(20 << 20);
        let large = resource_list(&[("padding", &"x".repeat(8 << 20))], 1);
        let answer = evaluate(&mut client, &stage.image(COUNT), large).await;
        answer.expect("a list of 8 MB is within the new limit");
    });
}

#[test]
fn a_killed_replica_does_not_affect_callers_of_another() {
    on_cluster(async |stage| {
        let flags = ["--max-parallel-pods-per-function=2"];
        let doomed = Runner::start_with_announcements(&stage, &flags).await;
        let survivor = Runner::start_with_announcements(&stage, &flags).await;
        let image = stage.image(COUNT);
        let here = Load::start(6, &survivor.address(), &image);
        let there = Load::start(6, &doomed.address(), &image);
        eventually("two pods", async || {
            let pods = function_pod_uids(&stage).await.len();
            assert!(pods <= 2, "{pods} pods");
            pods == 2
        })
        .await;
        tokio::join!(here.wait_for_answers(100), there.wait_for_answers(100));
        let before = function_pod_uids(&stage).await;
        assert_eq!(before.len(), 2);
        drop(doomed);
        assert_eq!(there.wait_for_failures().await.len(), 6);
        here.wait_for_answers(100).await;
        here.stop_without_failures().await;
        assert_eq!(function_pod_uids(&stage).await, before);
    });
}

#[test]
fn an_idle_replica_keeps_pods_that_another_uses() {
    on_cluster(async |stage| {
        let flags = ["--pod-ttl=4s", "--scan-interval=1s"];
        let idle = Runner::start_with_announcements(&stage, &flags).await;
        let busy = Runner::start_with_announcements(&stage, &flags).await;
        count(&stage, &idle).await;
        let before = function_pod_uids(&stage).await;
        let first = reclaim_after(&stage).await;
        let load = Load::start(2, &busy.address(), &stage.image(COUNT));
        // Twice the time after which the idle replica would remove the pod by its own use alone.
        eventually("a pod that outlives its first term", async || {
            assert_eq!(function_pod_uids(&stage).await, before);
            reclaim_after(&stage).await >= first + 8
        })
        .await;
        load.stop_without_failures().await;
        eventually("no pod", async || function_pods(&stage).await.is_empty()).await;
    });
}

async fn reclaim_after(stage: &Stage) -> u64 {
    let pods = function_pods(stage).await;
    let annotation = pods.first().and_then(|pod| {
        let text = pod.annotations().get("fn.kpt.dev/reclaim-after")?;
        text.parse().ok()
    });
    annotation.expect("a pod says when it may go")
}
