//! The runner's pods on a real cluster: creation, discovery, sharing, limits and removal.

use std::time::{Duration, Instant};

use e2e::{
    Runner, Stage, busy_pod, connect, evaluate, evaluate_within, eventually, function_pod_uids,
    function_pods, function_services, is_ready, on_cluster, resource_list,
};
use futures::future::join_all;

const COUNT: &str = "functions/count";
const WAIT: &str = "functions/wait";

/// Evaluates the count function, requires success and returns its output.
async fn count(stage: &Stage, runner: &Runner) -> Vec<u8> {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 3)).await;
    answer.expect("the function answers").resource_list.to_vec()
}

#[test]
fn a_cold_function_is_evaluated_and_stays_warm() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let cold = count(&stage, &runner).await;
        let first = function_pod_uids(&stage).await;
        assert_eq!(first.len(), 1);
        let begun = Instant::now();
        assert_eq!(count(&stage, &runner).await, cold);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(function_pod_uids(&stage).await, first);
        assert_eq!(function_services(&stage).await.len(), 1);
    });
}

#[test]
fn finds_a_pod_that_cannot_announce_itself() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[]).await;
        count(&stage, &runner).await;
    });
}

#[test]
fn runs_with_the_wrapper_as_an_image_volume_and_without_services() {
    on_cluster(async |stage| {
        let flags = ["--wrapper-injection=image", "--pod-connect=pod"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        count(&stage, &runner).await;
        assert!(function_services(&stage).await.is_empty());
    });
}

#[test]
fn adopts_a_pod_whose_image_has_a_tag_only() {
    on_cluster(async |stage| {
        let flags = ["--image-pinning=tag"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        count(&stage, &runner).await;
        let first = function_pod_uids(&stage).await;
        let pod = function_pods(&stage).await.remove(0);
        let containers = pod.spec.expect("a spec").containers;
        let function = containers.iter().find(|it| it.name == "function");
        let image = function.and_then(|function| function.image.clone());
        assert_eq!(image, Some(stage.image(COUNT)));
        drop(runner);
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        count(&stage, &runner).await;
        assert_eq!(function_pod_uids(&stage).await, first);
    });
}

#[test]
fn fifty_callers_at_a_cold_function_make_one_pod() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        join_all((0..50).map(|_| count(&stage, &runner))).await;
        assert_eq!(function_pods(&stage).await.len(), 1);
    });
}

#[test]
fn removes_an_unused_pod_with_its_service() {
    on_cluster(async |stage| {
        let flags = ["--pod-ttl=3s", "--scan-interval=1s"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        count(&stage, &runner).await;
        assert_eq!(function_services(&stage).await.len(), 1);
        eventually("neither pod nor service", async || {
            function_pods(&stage).await.is_empty() && function_services(&stage).await.is_empty()
        })
        .await;
    });
}

#[test]
fn creates_at_most_the_maximum_number_of_pods() {
    on_cluster(async |stage| {
        let flags = [
            "--max-parallel-pods-per-function=2",
            "--max-waitlist-length=1",
        ];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        let list = resource_list(&[("seconds", "2")], 1);
        let calls = join_all((0..6).map(async |_| {
            let mut client = connect(&runner.address()).expect("an address");
            evaluate(&mut client, &stage.image(WAIT), list.clone()).await
        }));
        let most = async {
            let mut most = 0;
            eventually("two ready pods", async || {
                let now = function_pods(&stage).await;
                most = most.max(now.len());
                now.iter().filter(|pod| is_ready(pod)).count() == 2
            })
            .await;
            most
        };
        let (answers, most) = tokio::join!(calls, most);
        assert_eq!(most, 2);
        assert_eq!(function_pods(&stage).await.len(), 2);
        for answer in answers {
            answer.expect("every caller is answered");
        }
    });
}

#[test]
fn a_pod_starts_after_its_caller_disconnected_and_is_removed_when_unused() {
    on_cluster(async |stage| {
        let flags = ["--pod-ttl=4s", "--scan-interval=1s"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        let begin = |seconds: &str| {
            let (address, image) = (runner.address(), stage.image(WAIT));
            let list = resource_list(&[("seconds", seconds)], 1);
            tokio::spawn(async move {
                let mut client = connect(&address).expect("an address");
                evaluate(&mut client, &image, list).await
            })
        };
        let waits = begin("0");
        let mut started = Vec::new();
        eventually("a pod for him", async || {
            started = function_pod_uids(&stage).await;
            !started.is_empty()
        })
        .await;
        waits.abort();
        // The next call is served by the pod that was started for the disconnected caller; its
        // caller disconnects during the call.
        let calls = begin("600");
        let (pod, container) = busy_pod(&stage, "sleep").await;
        assert_eq!(pod.metadata.uid.as_ref(), started.first());
        calls.abort();
        eventually("the end of what runs for nobody", async || {
            matches!(
                stage.bed().runs_in_container(&container, "sleep"),
                Ok(false)
            )
        })
        .await;
        eventually("neither pod nor service", async || {
            function_pods(&stage).await.is_empty() && function_services(&stage).await.is_empty()
        })
        .await;
    });
}

#[test]
fn reports_a_deadline_that_passes_during_a_start_and_uses_the_pod_for_the_next_call() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        runner.serving().await;
        let mut client = connect(&runner.address()).expect("an address");
        let image = stage.image(COUNT);
        let short = Duration::from_millis(400);
        let late = evaluate_within(short, &mut client, &image, resource_list(&[], 1)).await;
        let status = late.expect_err("no pod starts that fast");
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded, "{status}");
        assert!(status.message().contains("starting pod"), "{status}");
        let started = function_pod_uids(&stage).await;
        assert_eq!(started.len(), 1);
        count(&stage, &runner).await;
        assert_eq!(function_pod_uids(&stage).await, started);
    });
}
