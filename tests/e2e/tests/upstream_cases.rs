//! The cases of Porch's own end-to-end suite that concern the runner, with images of the test bed.
//!
//! The case of an image that the registry has and the node cannot pull is in `starts.rs`
//! (`an_image_that_cannot_be_pulled_fails_the_call`); the case of an image that the registry does
//! not have is here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use e2e::{
    LIMIT, Runner, Stage, connect, delete_without_grace_period, evaluate, evaluate_within,
    eventually, function_pods, on_cluster, resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use runner_core::Reason;
use serde_json::{Value, json};
use tonic::Code;

const SET_NAMESPACE: &str = "functions/set-namespace";
const ANNOTATE: &str = "functions/annotate";
/// Time limit of upstream's suite for two calls of a 5 s function.
const TWO_CALLS_DEADLINE: Duration = Duration::from_secs(13);

/// Returns the function pods that are not being deleted.
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

/// Evaluates a function and returns its output.
async fn transform(runner: &Runner, image: &str, list: impl Into<Vec<u8>>) -> Value {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, image, list).await;
    let answer = answer.unwrap_or_else(|status| panic!("{image}: {status:?}"));
    let output = std::str::from_utf8(&answer.resource_list).expect("text");
    serde_saphyr::from_str(output).expect("a resource list")
}

/// Returns the metadata of the items of a resource list.
fn metadata(list: &Value) -> Vec<&Value> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| &item["metadata"]).collect()
}

#[test]
fn the_output_of_one_function_is_the_input_of_the_next() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let input = resource_list(&[("namespace", "staging")], 2);
        let mut list = transform(&runner, &stage.image(SET_NAMESPACE), input).await;
        // As in a pipeline, the next function has its own configuration.
        list["functionConfig"]["data"] = json!({"example.com/team": "blue"});
        let list = transform(&runner, &stage.image(ANNOTATE), list.to_string()).await;
        let items = metadata(&list);
        assert_eq!(items.len(), 2);
        for item in items {
            assert_eq!(item["namespace"], "staging", "{list}");
            assert_eq!(item["annotations"]["example.com/team"], "blue", "{list}");
        }
        assert_eq!(live_pods(&stage).await.len(), 2, "a pod for each function");
    });
}

#[test]
fn annotations_are_set_in_a_pod() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &["--disable-runtimes=exec"]).await;
        let input = resource_list(&[("example.com/team", "blue")], 2);
        let list = transform(&runner, &stage.image(ANNOTATE), input).await;
        for item in metadata(&list) {
            assert_eq!(item["annotations"], json!({"example.com/team": "blue"}));
        }
        assert_eq!(list["results"][0]["message"], "annotated 2 items");
        let pods = live_pods(&stage).await;
        assert_eq!(pods.len(), 1);
        assert!(pods[0].name_any().starts_with("annotate-v1-"));
    });
}

/// Porch reads the file named by `configPath` and sends its resource as `functionConfig`; the
/// resource is also an item of the package.
#[test]
fn sets_the_namespace_from_a_resource_of_the_package() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let resource = |name: &str, path: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "annotations": {
                    "internal.config.kubernetes.io/path": path,
                }},
            })
        };
        let mut config = resource("namespace-config", "namespace-config.yaml");
        config["metadata"]["annotations"]["config.kubernetes.io/local-config"] = json!("true");
        config["data"] = json!({"namespace": "from-a-file"});
        let input = json!({
            "apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList",
            "functionConfig": config,
            "items": [resource("item-0", "item-0.yaml"), config],
        });
        let list = transform(&runner, &stage.image(SET_NAMESPACE), input.to_string()).await;
        let items = metadata(&list);
        assert_eq!(items.len(), 2);
        for item in items {
            assert_eq!(item["namespace"], "from-a-file", "{list}");
        }
    });
}

#[test]
fn an_image_that_the_registry_does_not_have_is_reported_with_the_registrys_reason() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let mut client = connect(&runner.address()).expect("an address");
        let image = format!(
            "{}/functions/count:no-such-tag",
            stage.bed().open_registry()
        );
        let refused = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        let refused = refused.expect_err("the registry has no such tag");
        assert_eq!(refused.code(), Code::NotFound, "{refused:?}");
        let reason = runner_proto::status::decode(&refused).reason();
        assert_eq!(reason, Reason::FunctionNotFound);
        for part in [image.as_str(), "MANIFEST_UNKNOWN"] {
            assert!(refused.message().contains(part), "{refused:?}");
        }
        assert!(function_pods(&stage).await.is_empty());
    });
}

#[test]
fn a_pod_runs_exactly_the_requested_image_and_its_successor_has_another_name() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &["--image-pinning=tag"]).await;
        let image = stage.image("functions/count");
        succeeds(&runner, &image).await;
        let pods = live_pods(&stage).await;
        assert_eq!(pods.len(), 1);
        let containers = &pods[0].spec.as_ref().expect("a spec").containers;
        assert_eq!(containers[0].image.as_deref(), Some(image.as_str()));

        delete_without_grace_period(&stage, &pods[0]).await;
        // While the removed pod counts as one that may come back, the next pod has the next slot.
        eventually("the runner observes that the pod is gone", async || {
            runner.pods().await.is_empty()
        })
        .await;
        succeeds(&runner, &image).await;
        let successors = live_pods(&stage).await;
        assert_eq!(successors.len(), 1);
        let last_part = |pod: &Pod| pod.name_any().rsplit('-').next().map(str::to_owned);
        assert_ne!(last_part(&pods[0]), last_part(&successors[0]));
        let service = |pod: &Pod| pod.labels().get("fn.kpt.dev/image").cloned();
        assert_eq!(service(&pods[0]), service(&successors[0]));
    });
}

/// Makes four concurrent calls, with these flags, and checks the highest number of pods.
fn four_calls_make(waitlist: usize, maximum: usize, expected: usize) {
    on_cluster(async |stage| {
        let flags = [
            format!("--max-waitlist-length={waitlist}"),
            format!("--max-parallel-pods-per-function={maximum}"),
        ];
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let runner = Runner::start_with_announcements(&stage, &flags).await;
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
fn two_concurrent_calls_run_in_two_pods() {
    on_cluster(async |stage| {
        let flags = [
            "--max-parallel-pods-per-function=2",
            "--max-waitlist-length=1",
        ];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        let image = stage.image("functions/wait");
        let call = async || {
            let mut client = connect(&runner.address()).expect("an address");
            let list = resource_list(&[("seconds", "5")], 1);
            let answer = evaluate_within(TWO_CALLS_DEADLINE, &mut client, &image, list).await;
            answer.expect("the function answers in time");
        };
        futures::join!(call(), call());
        assert_eq!(live_pods(&stage).await.len(), 2);
    });
}

#[test]
fn a_function_may_be_written_with_and_without_registry_and_tag() {
    on_cluster(async |stage| {
        let prefix = format!("{}/functions", stage.bed().open_registry());
        let flag = format!("--default-image-prefix={prefix}");
        let runner = Runner::start_with_announcements(&stage, &[&flag]).await;
        for tag in ["", ":latest", ":v1", ":v1.0", ":v1.0.0"] {
            succeeds(&runner, &format!("count{tag}")).await;
            succeeds(&runner, &format!("{prefix}/count{tag}")).await;
        }
    });
}

#[test]
fn a_failing_validator_is_reported_with_its_results() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
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
