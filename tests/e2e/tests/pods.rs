//! The runner's pods on a real cluster: made once, shared, found again, replaced and removed.

use std::time::{Duration, Instant};

use e2e::{
    Runner, Stage, connect, evaluate, evaluate_within, eventually, on_cluster,
    on_disturbed_cluster, resource_list,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplate, Service};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// The node's address, at which pods reach the runner.
const HOME: &str = "--announce-address=198.18.255.254";
const ANY_PORT: &str = "--announce-port=0";
const COUNT: &str = "functions/count";

async fn pods(stage: &Stage) -> Vec<Pod> {
    let labelled = ListParams::default().labels("fn.kpt.dev/image");
    let list = stage.api::<Pod>().list(&labelled).await;
    list.expect("pods can be listed").items
}

async fn services(stage: &Stage) -> usize {
    let labelled = ListParams::default().labels("fn.kpt.dev/image");
    let list = stage.api::<Service>().list(&labelled).await;
    list.expect("services can be listed").items.len()
}

/// One evaluation that must succeed.
async fn count(stage: &Stage, runner: &Runner) -> Vec<u8> {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 3)).await;
    answer.expect("the function answers").resource_list.to_vec()
}

#[test]
fn a_cold_function_is_evaluated_and_stays_warm() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let cold = count(&stage, &runner).await;
        let first = pods(&stage).await;
        assert_eq!(first.len(), 1);
        let begun = Instant::now();
        assert_eq!(count(&stage, &runner).await, cold);
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(pods(&stage).await[0].uid(), first[0].uid());
        assert_eq!(services(&stage).await, 1);
    });
}

#[test]
fn a_pod_that_cannot_call_home_is_found_all_the_same() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[]).await;
        count(&stage, &runner).await;
    });
}

#[test]
fn the_wrapper_can_come_as_an_image_volume_and_without_services() {
    on_cluster(async |stage| {
        let flags = [
            HOME,
            ANY_PORT,
            "--wrapper-injection=image",
            "--pod-connect=pod",
        ];
        let runner = Runner::start(&stage, &flags).await;
        count(&stage, &runner).await;
        assert_eq!(services(&stage).await, 0);
    });
}

#[test]
fn fifty_callers_at_a_cold_function_make_one_pod() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        join_all((0..50).map(|_| count(&stage, &runner))).await;
        assert_eq!(pods(&stage).await.len(), 1);
    });
}

#[test]
fn an_unused_pod_goes_with_its_service() {
    on_cluster(async |stage| {
        let flags = [HOME, ANY_PORT, "--pod-ttl=3s", "--scan-interval=1s"];
        let runner = Runner::start(&stage, &flags).await;
        count(&stage, &runner).await;
        assert_eq!(services(&stage).await, 1);
        eventually("neither pod nor service", async || {
            pods(&stage).await.is_empty() && services(&stage).await == 0
        })
        .await;
    });
}

#[test]
fn a_successor_adopts_the_pods_of_a_killed_runner() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        count(&stage, &runner).await;
        let before = pods(&stage).await;
        // Ends it as kill -9 does.
        drop(runner);
        let successor = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        count(&stage, &successor).await;
        let after = pods(&stage).await;
        assert_eq!(after.len(), 1);
        assert_eq!(after[0].uid(), before[0].uid());
    });
}

#[test]
fn two_replicas_share_a_pod() {
    on_cluster(async |stage| {
        let one = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let other = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let calls = (0..10).map(|call| count(&stage, if call % 2 == 0 { &one } else { &other }));
        join_all(calls).await;
        assert_eq!(pods(&stage).await.len(), 1);
    });
}

#[test]
fn a_call_whose_pod_is_deleted_goes_to_another() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let image = stage.image("bad/sleep");
        let address = runner.address();
        let call = tokio::spawn(async move {
            let mut client = connect(&address).expect("an address");
            let patience = Duration::from_secs(40);
            evaluate_within(patience, &mut client, &image, resource_list(&[], 1)).await
        });
        let mut first = None;
        eventually("a pod that runs the function", async || {
            first = pods(&stage).await.into_iter().find(is_ready);
            first.is_some()
        })
        .await;
        let first = first.expect("it was there");
        let at_once = DeleteParams::default().grace_period(0);
        let deleted = stage.api::<Pod>().delete(&first.name_any(), &at_once).await;
        deleted.expect("the pod can be deleted");
        eventually("another pod", async || {
            pods(&stage)
                .await
                .iter()
                .any(|pod| pod.uid() != first.uid())
        })
        .await;
        assert!(!call.is_finished(), "the call goes on: {:?}", call.await);
        call.abort();
    });
}

#[test]
fn a_pod_that_no_node_takes_fails_the_call_in_the_schedulers_words() {
    on_cluster(async |stage| {
        store_template(
            &stage,
            json!({"nodeSelector": {"there": "is-no-such-node"}}),
            "/wrapper-server-tools/wrapper-server",
        )
        .await;
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let says = start_failure(&stage, &runner).await;
        assert!(says.contains("Unschedulable"), "{says}");
    });
}

#[test]
fn a_container_that_cannot_start_fails_the_call_in_the_kubelets_words() {
    on_cluster(async |stage| {
        store_template(&stage, json!({}), "/no/such/program").await;
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        let says = start_failure(&stage, &runner).await;
        assert!(says.contains("/no/such/program"), "{says}");
    });
}

#[test]
fn a_changed_template_replaces_pods_without_failing_a_call() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        count(&stage, &runner).await;
        let old = pods(&stage).await.remove(0).uid();
        let change = json!({"template": {"metadata": {"annotations": {"team": "blue"}}}});
        let templates = stage.api::<PodTemplate>();
        let changed = templates
            .patch(
                "base-pod-template",
                &PatchParams::default(),
                &Patch::Merge(change),
            )
            .await;
        changed.expect("the template can be changed");
        // Every one of these must succeed, on whichever pod.
        eventually("a pod of the new template alone", async || {
            join_all((0..4).map(|_| count(&stage, &runner))).await;
            let now = pods(&stage).await;
            now.len() == 1 && now[0].uid() != old && now[0].annotations().contains_key("team")
        })
        .await;
    });
}

#[test]
fn a_function_has_no_more_pods_than_its_maximum() {
    on_cluster(async |stage| {
        let flags = [
            HOME,
            ANY_PORT,
            "--max-parallel-pods-per-function=2",
            "--max-waitlist-length=1",
        ];
        let runner = Runner::start(&stage, &flags).await;
        let calls: Vec<_> = (0..6)
            .map(|_| {
                let (address, image) = (runner.address(), stage.image("bad/sleep"));
                tokio::spawn(async move {
                    let mut client = connect(&address).expect("an address");
                    let patience = Duration::from_secs(40);
                    evaluate_within(patience, &mut client, &image, resource_list(&[], 1)).await
                })
            })
            .collect();
        eventually("two ready pods", async || {
            let now = pods(&stage).await;
            assert!(now.len() <= 2, "{} pods", now.len());
            now.iter().filter(|pod| is_ready(pod)).count() == 2
        })
        .await;
        calls.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

#[test]
fn a_deleted_service_comes_back() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        count(&stage, &runner).await;
        let name = pods(&stage).await[0].name_any();
        let all = stage.api::<Service>();
        let before = all.get(&name).await.expect("the service is there").uid();
        all.delete(&name, &DeleteParams::default())
            .await
            .expect("the service can be deleted");
        count(&stage, &runner).await;
        eventually("another service of that name", async || {
            let now = all.get_opt(&name).await.expect("services can be read");
            now.is_some_and(|service| service.uid() != before)
        })
        .await;
        count(&stage, &runner).await;
    });
}

#[test]
fn warm_functions_go_on_without_the_api_server() {
    on_disturbed_cluster(async |stage| {
        let runner = Runner::start(&stage, &[HOME, ANY_PORT]).await;
        count(&stage, &runner).await;
        let before = pods(&stage).await.remove(0).uid();
        let fault = stage
            .bed()
            .without_api_server()
            .expect("the API server ends");
        for _ in 0..20 {
            count(&stage, &runner).await;
        }
        fault.heal().expect("the API server starts again");
        count(&stage, &runner).await;
        assert_eq!(pods(&stage).await.remove(0).uid(), before);
    });
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Stores a pod template of the operator's own before the runner would store its default.
async fn store_template(stage: &Stage, more: serde_json::Value, program: &str) {
    let mount = json!([{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}]);
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "initContainers": [{
            "name": "copy-wrapper-server", "image": "replaced", "volumeMounts": mount,
            "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"],
        }],
        "containers": [{
            "name": "function", "image": "replaced", "volumeMounts": mount, "command": [program],
        }],
        "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    let template = json!({"metadata": {"name": "base-pod-template"}, "template": {"spec": spec}});
    let template: PodTemplate = serde_json::from_value(template).expect("a template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    stored.expect("the cluster takes the template");
}

/// What a caller is told when the pod cannot start.
async fn start_failure(stage: &Stage, runner: &Runner) -> String {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 1)).await;
    let status = answer.expect_err("the pod cannot start");
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
    status.message().to_owned()
}
