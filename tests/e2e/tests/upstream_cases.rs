//! The cases of Porch's own end-to-end suite that concern the runner, with images of the test bed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use e2e::{
    LIMIT, Runner, Stage, connect, evaluate, evaluate_within, eventually, function_pods,
    on_cluster, remove_at_once, resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use runner_core::Reason;
use tonic::Code;

/// The pods that are not being deleted.
async fn live_pods(stage: &Stage) -> Vec<Pod> {
    let mut pods = function_pods(stage).await;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    pods
}

async fn succeeds(runner: &Runner, image: &str) {
    let mut client = connect(&runner.address()).expect("an address");
    let input = resource_list(&[], 2);
    let answer = evaluate(&mut client, image, input.clone()).await;
    let answer = answer.unwrap_or_else(|status| panic!("{image}: {status:?}"));
    assert_eq!(answer.resource_list, input.as_bytes(), "{image}");
}

#[test]
fn a_pod_runs_exactly_the_requested_image_and_its_successor_has_another_name() {
    on_cluster(async |stage| {
        let runner = Runner::start_at_home(&stage, &["--image-pinning=tag"]).await;
        let image = stage.image("functions/count");
        succeeds(&runner, &image).await;
        let pods = live_pods(&stage).await;
        assert_eq!(pods.len(), 1);
        let containers = &pods[0].spec.as_ref().expect("a spec").containers;
        assert_eq!(containers[0].image.as_deref(), Some(image.as_str()));

        remove_at_once(&stage, &pods[0]).await;
        succeeds(&runner, &image).await;
        let successors = live_pods(&stage).await;
        assert_eq!(successors.len(), 1);
        let last_part = |pod: &Pod| pod.name_any().rsplit('-').next().map(str::to_owned);
        assert_ne!(last_part(&pods[0]), last_part(&successors[0]));
        let service = |pod: &Pod| pod.labels().get("fn.kpt.dev/image").cloned();
        assert_eq!(service(&pods[0]), service(&successors[0]));
    });
}

/// Four calls at once, with a waitlist of `waitlist` and at most `maximum` pods.
fn four_calls_make(waitlist: usize, maximum: usize, expected: usize) {
    on_cluster(async |stage| {
        let flags = [
            format!("--max-waitlist-length={waitlist}"),
            format!("--max-parallel-pods-per-function={maximum}"),
        ];
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let runner = Runner::start_at_home(&stage, &flags).await;
        let image = stage.image("functions/wait");
        let answered = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let mut client = connect(&runner.address()).expect("an address");
            let (image, answered) = (image.clone(), Arc::clone(&answered));
            tokio::spawn(async move {
                let list = resource_list(&[("seconds", "3")], 1);
                let answer = evaluate_within(LIMIT, &mut client, &image, list).await;
                answer.expect("the function answers");
                answered.fetch_add(1, Ordering::SeqCst);
            });
        }
        let mut most = 0;
        eventually("four answers", async || {
            most = most.max(live_pods(&stage).await.len());
            answered.load(Ordering::SeqCst) == 4
        })
        .await;
        assert_eq!(most, expected, "waitlist {waitlist}, maximum {maximum}");
    });
}

#[test]
fn the_number_of_pods_follows_the_waitlist_up_to_the_maximum() {
    for (waitlist, maximum, expected) in [(1, 2, 2), (2, 4, 2), (4, 4, 1), (1, 4, 4), (1, 1, 1)] {
        four_calls_make(waitlist, maximum, expected);
    }
}

#[test]
fn a_function_may_be_written_with_and_without_registry_and_tag() {
    on_cluster(async |stage| {
        let prefix = format!("{}/functions", stage.bed().open_registry());
        let flag = format!("--default-image-prefix={prefix}");
        let runner = Runner::start_at_home(&stage, &[&flag]).await;
        for tag in ["", ":latest", ":v1", ":v1.0", ":v1.0.0"] {
            succeeds(&runner, &format!("count{tag}")).await;
            succeeds(&runner, &format!("{prefix}/count{tag}")).await;
        }
    });
}

#[test]
fn a_failing_validator_is_reported_with_its_results() {
    on_cluster(async |stage| {
        let runner = Runner::start_at_home(&stage, &[]).await;
        let mut client = connect(&runner.address()).expect("an address");
        let image = stage.image("bad/validator");
        let refused = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        let refused = refused.expect_err("the validator refuses");
        assert_eq!(refused.code(), Code::Internal, "{refused:?}");
        let expected = "[error] v1/ConfigMap/item-0 data.replicas: replicas must be even";
        assert!(refused.message().contains(expected), "{refused:?}");
        let reason = runner_proto::status::decode(&refused).reason();
        assert_eq!(reason, Reason::FunctionFailed);
    });
}
