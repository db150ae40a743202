//! Losses of pods, wrappers and services that are in use: callers still get an answer in bounded
//! time.

use std::time::{Duration, Instant};

use e2e::{
    Load, Runner, Stage, busy_pod, connect, delete_without_grace_period, evaluate, evaluate_within,
    eventually, function_container, function_pod_uids, function_pods, function_services,
    on_cluster, resource_list, service_of,
};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{ResourceExt, api::DeleteParams};
use runner_proto::{evaluator::EvaluateFunctionResponse, runner_status::pod::Way};
use tokio::{net::TcpStream, task::JoinHandle};

const PATIENCE: Duration = Duration::from_secs(40);
/// Time limit for two keep-alives, a probe and the start of another pod, on a busy machine.
const DEAD_POD: Duration = Duration::from_secs(25);

type Call = JoinHandle<Result<EvaluateFunctionResponse, tonic::Status>>;

/// Starts a call that takes this number of seconds.
fn begin(stage: &Stage, runner: &Runner, seconds: &str) -> Call {
    let (address, image) = (runner.address(), stage.image("functions/wait"));
    let list = resource_list(&[("seconds", seconds)], 1);
    tokio::spawn(async move {
        let mut client = connect(&address).expect("an address");
        evaluate_within(PATIENCE, &mut client, &image, list).await
    })
}

/// Starts a runner whose function has a pod, and returns it with the pod's container.
///
/// The kubelet has reported the container, so [`busy_pod`] can detect a call without delay.
async fn warm(stage: &Stage) -> (Runner, String) {
    let runner = Runner::start_with_announcements(stage, &[]).await;
    answered(begin(stage, &runner, "0")).await;
    let mut container = None;
    eventually("a running container", async || {
        let pods = function_pods(stage).await;
        container = pods.first().and_then(function_container);
        container.is_some()
    })
    .await;
    (runner, container.expect("it runs"))
}

async fn answered(call: Call) {
    let answer = call.await.expect("the caller does not panic");
    answer.expect("the caller has his answer");
}

#[test]
fn a_call_whose_pod_is_removed_is_answered_by_another() {
    on_cluster(async |stage| {
        let (runner, _) = warm(&stage).await;
        let call = begin(&stage, &runner, "2");
        let (pod, _) = busy_pod(&stage, "sleep").await;
        delete_without_grace_period(&stage, &pod).await;
        answered(call).await;
        let now = function_pod_uids(&stage).await;
        assert!(now.iter().all(|uid| Some(uid) != pod.metadata.uid.as_ref()));
    });
}

#[test]
fn a_terminating_pod_finishes_its_call() {
    on_cluster(async |stage| {
        let (runner, _) = warm(&stage).await;
        let call = begin(&stage, &runner, "3");
        let (pod, _) = busy_pod(&stage, "sleep").await;
        let deleted = stage
            .api::<Pod>()
            .delete(&pod.name_any(), &DeleteParams::default())
            .await;
        deleted.expect("the pod can be deleted");
        answered(call).await;
        assert!(!runner.log().contains("was lost"), "{}", runner.log());
        // The next call needs another pod and has nothing else to wait for.
        answered(begin(&stage, &runner, "0")).await;
    });
}

#[test]
fn a_call_whose_wrapper_is_killed_is_answered() {
    on_cluster(async |stage| {
        let (runner, _) = warm(&stage).await;
        let call = begin(&stage, &runner, "2");
        let (_, container) = busy_pod(&stage, "sleep").await;
        let killed = stage.bed().kill_in_container(&container, "wrapper-server");
        assert!(killed.expect("the wrapper can be killed"));
        answered(call).await;
        assert!(runner.log().contains("was lost"), "{}", runner.log());
    });
}

#[test]
fn a_call_to_a_paused_pod_is_answered_by_another() {
    on_cluster(async |stage| {
        let (runner, _) = warm(&stage).await;
        let call = begin(&stage, &runner, "2");
        let (_, container) = busy_pod(&stage, "sleep").await;
        let fault = stage.bed().with_paused_container(&container);
        let fault = fault.expect("the container can be paused");
        let begun = Instant::now();
        answered(call).await;
        let took = begun.elapsed();
        assert!(took < DEAD_POD, "{took:?}");
        drop(fault);
    });
}

#[test]
fn a_call_to_a_pod_without_network_is_answered_by_another() {
    on_cluster(async |stage| {
        let (runner, container) = warm(&stage).await;
        let fault = stage.bed().with_cut_network(&container);
        let fault = fault.expect("the network can be cut");
        let begun = Instant::now();
        answered(begin(&stage, &runner, "0")).await;
        let took = begun.elapsed();
        assert!(took < DEAD_POD, "{took:?}");
        drop(fault);
    });
}

#[test]
fn recreates_a_deleted_service_without_failing_calls() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let load = Load::start(4, &runner.address(), &image);
        load.wait_for_answers(20).await;
        let pods = function_pods(&stage).await;
        let name = service_of(pods.first().expect("a pod")).to_owned();
        let services = stage.api::<Service>();
        let before = services.get(&name).await.expect("a service").uid();
        let deleted = services.delete(&name, &DeleteParams::default()).await;
        deleted.expect("the service can be deleted");
        eventually("another service of that name", async || {
            let now = services.get_opt(&name).await.expect("services can be read");
            now.is_some_and(|service| service.uid() != before)
        })
        .await;
        load.wait_for_answers(20).await;
        load.stop_without_failures().await;
        // A successor with this flag reaches the pod only through the service.
        drop(runner);
        let flags = ["--pod-connect=service"];
        let successor = Runner::start_with_announcements(&stage, &flags).await;
        let mut client = connect(&successor.address()).expect("an address");
        let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        answer.expect("the service leads to the pod");
        assert_eq!(function_pods(&stage).await.len(), 1);
    });
}

#[test]
fn calls_limited_to_the_service_go_through_the_recreated_service() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &["--pod-connect=service"]).await;
        let load = Load::start(4, &runner.address(), &stage.image("functions/count"));
        load.wait_for_answers(20).await;
        let pods = function_pod_uids(&stage).await;
        let before = function_services(&stage).await.remove(0);
        let (name, uid) = (before.name_any(), before.uid());
        let services = stage.api::<Service>();
        let deleted = services.delete(&name, &DeleteParams::default()).await;
        deleted.expect("the service can be deleted");
        let mut address = None;
        eventually("another service of that name", async || {
            let now = services.get_opt(&name).await.expect("services can be read");
            address = now
                .filter(|service| service.uid() != uid)
                .and_then(|service| service.spec?.cluster_ip);
            address.is_some()
        })
        .await;
        eventually("the way through it", async || {
            let pod = runner.only_pod().await;
            assert_eq!(pod.way(), Way::Service);
            Some(pod.address) == address
        })
        .await;
        let former = before.spec.and_then(|spec| spec.cluster_ip);
        let former = format!("{}:9446", former.expect("a ClusterIP"));
        eventually("nobody at the former address", async || {
            TcpStream::connect(&former).await.is_err()
        })
        .await;
        load.wait_for_answers(20).await;
        load.stop_without_failures().await;
        assert_eq!(function_pod_uids(&stage).await, pods);
    });
}
