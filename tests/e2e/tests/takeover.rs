//! Takeover from the Go runner and rollback to it, with pods and services as it creates them.
//!
//! The Go runner names pods by the slot and a suffix from the API server, stamps them with the
//! PodTemplate's resourceVersion alone and writes no `reclaim-after`; older versions wrote it. At
//! its start it adopts the labelled pods with an equal stamp, and stores them by their image. This
//! runner's pods have a digest in their image, so no call of the Go runner would find them, and
//! removing them would also remove a Service that another pod uses. This runner's stamp is
//! therefore never equal: the Go runner replaces these pods at its first call and keeps using their
//! Services.
//!
//! The test bed has no Go runner, so in a takeover nothing serves before this runner listens. The
//! callers of these tests start before that moment, and only a refused connection is not a failure.

use std::{error::Error, time::Duration};

use e2e::{
    Load, Runner, Stage, connect, evaluate, eventually, function_pod_uids, function_pods,
    function_services,
    go_runner::{
        GoOccasion, GoPod, count_slot, delete_slot_as_go_runner, pods_adopted_by_go_runner,
        replace_slot_as_go_runner, store_service_template,
    },
    install_definitions, on_cluster, resource_list, store_template, wait_for_no_pods_and_services,
};
use kube::ResourceExt;
use runner_core::Reason;
use runner_test_support::free_address;
use serde_json::json;

const COUNT: &str = "functions/count";
const CALLERS: usize = 8;
/// Flags with short times, so that unused pods are removed during the test.
const FLAGS: [&str; 2] = ["--pod-ttl=8s", "--scan-interval=1s"];

/// Creates a pod as the Go runner does for a call, and returns its uid once it is ready.
async fn leave(stage: &Stage, pod: GoPod) -> String {
    let pod = pod.create(stage, GoOccasion::Call).await;
    pod.ready().await.uid().expect("a pod has a uid")
}

async fn count(stage: &Stage, address: &str) {
    let mut client = connect(address).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 1)).await;
    answer.expect("the function answers");
}

async fn service_names(stage: &Stage) -> Vec<String> {
    let services = function_services(stage).await;
    services.iter().map(ResourceExt::name_any).collect()
}

/// Checks that the Go runner's pod serves every call from the first on, and that its objects are
/// removed when unused.
fn takes_over(pod_template_first: bool) {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        if !pod_template_first {
            store_service_template(&stage).await;
        }
        let template = store_template(&stage, json!({}), json!({})).await;
        if pod_template_first {
            store_service_template(&stage).await;
        }
        let left = leave(&stage, GoPod::of_template(&template)).await;
        let port = free_address().port();
        let address = format!("127.0.0.1:{port}");
        let load = Load::start_before_listening(CALLERS, &address, &stage.image(COUNT)).await;
        let flag = format!("--port={port}");
        let runner =
            Runner::start_with_announcements(&stage, &[&FLAGS[..], &[flag.as_str()]].concat())
                .await;
        assert_eq!(runner.address(), address);
        load.wait_for_answers(100).await;
        load.stop_without_failures().await;
        assert_eq!(function_pod_uids(&stage).await, [left]);
        assert_eq!(service_names(&stage).await, [count_slot(&stage)]);
        wait_for_no_pods_and_services(&stage).await;
    });
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
fn adopts_a_pod_that_names_a_digest_and_a_time_to_reclaim_it() {
    on_cluster(async |stage| {
        let template = store_template(&stage, json!({}), json!({})).await;
        let pod = GoPod::of_template(&template).with_digest();
        let left = leave(&stage, pod.reclaimable_after(Duration::from_secs(60))).await;
        let runner = Runner::start_with_announcements(&stage, &FLAGS).await;
        count(&stage, &runner.address()).await;
        assert_eq!(function_pod_uids(&stage).await, [left]);
        assert_eq!(service_names(&stage).await, [count_slot(&stage)]);
    });
}

#[test]
fn replaces_a_pod_of_an_outdated_template_when_the_function_is_called() {
    on_cluster(async |stage| {
        let pod = GoPod::of_template("1").reclaimable_after(Duration::from_secs(600));
        let left = leave(&stage, pod).await;
        let runner = Runner::start_with_announcements(&stage, &FLAGS).await;
        eventually("a pod of this template alone", async || {
            count(&stage, &runner.address()).await;
            let now = function_pod_uids(&stage).await;
            now.len() == 1 && !now.contains(&left)
        })
        .await;
        wait_for_no_pods_and_services(&stage).await;
    });
}

#[test]
fn removes_a_pod_of_an_outdated_template_that_nobody_uses() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        store_template(&stage, json!({}), json!({})).await;
        leave(&stage, GoPod::of_template("1")).await;
        let _runner = Runner::start_with_announcements(&stage, &FLAGS).await;
        wait_for_no_pods_and_services(&stage).await;
    });
}

#[test]
fn keeps_a_pod_that_the_go_runner_starts_beside_it() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        // The grace period of installations, so that the old and the new pod overlap.
        let grace = json!({"terminationGracePeriodSeconds": 30});
        let template = store_template(&stage, grace, json!({})).await;
        let runner = Runner::start_with_announcements(&stage, &["--scan-interval=1s"]).await;
        let load = Load::start(2, &runner.address(), &stage.image(COUNT));
        load.wait_for_answers(10).await;
        delete_slot_as_go_runner(&stage).await;
        let theirs = leave(&stage, GoPod::of_template(&template)).await;
        load.wait_for_answers(100).await;
        load.stop_without_failures().await;
        assert!(function_pod_uids(&stage).await.contains(&theirs));
        assert!(service_names(&stage).await.contains(&count_slot(&stage)));
    });
}

/// Stops this runner under load, and then repeats the Go runner's steps at its first call or
/// warm-up.
fn rolls_back(occasion: GoOccasion) {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let load = Load::start(CALLERS, &runner.address(), &stage.image(COUNT));
        load.wait_for_answers(100).await;
        assert!(runner.stop().await.success());
        for failure in load.wait_for_failures().await {
            let reason = runner_proto::status::decode(&failure).reason();
            // A failure with a source is an error of the connection, not a response of the runner.
            let expected = failure.source().is_some() || reason == Reason::Draining;
            assert!(expected, "{failure:?}");
        }
        let ours = function_pods(&stage).await;
        assert_eq!(ours.len(), 1);
        let services = function_services(&stage).await;
        assert_eq!(services.len(), 1);
        assert_eq!(services[0].name_any(), count_slot(&stage));

        let adopted = pods_adopted_by_go_runner(&stage).await;
        let adopted: Vec<_> = adopted.iter().map(ResourceExt::name_any).collect();
        assert!(adopted.is_empty(), "{adopted:?}");
        let theirs = replace_slot_as_go_runner(&stage, occasion).await;
        count(&stage, theirs.address()).await;
        let kept = function_services(&stage).await;
        assert_eq!(kept.len(), 1);
        assert_eq!(
            kept[0].uid(),
            services[0].uid(),
            "the Service is still ours"
        );
        eventually("the Go runner's pod alone", async || {
            let pods = function_pods(&stage).await;
            pods.len() == 1 && pods[0].name_any() == theirs.name()
        })
        .await;
        count(&stage, theirs.address()).await;
    });
}

#[test]
fn leaves_pods_that_the_go_runner_replaces_at_its_first_call() {
    rolls_back(GoOccasion::Call);
}

#[test]
fn leaves_pods_that_the_go_runner_replaces_when_it_warms_up() {
    rolls_back(GoOccasion::WarmUp);
}
