//! Checks that the faults of the test bed work and can be healed, because other tests rely on them.

use std::time::{Duration, Instant};

use e2e::{
    FunctionPod, Injection, Stage, connect, evaluate, evaluate_within, on_cluster,
    on_disturbed_cluster, resource_list,
};
use testbed::faults::Pace;
use tonic::Code;

const SHORT: Duration = Duration::from_secs(1);

async fn count(stage: &Stage, name: &str) -> FunctionPod {
    let image = stage.image("functions/count");
    FunctionPod::create(
        stage,
        name,
        &image,
        &["/function.sh"],
        Injection::InitContainer,
    )
    .await
}

#[test]
fn pods_answer_while_the_api_server_is_down() {
    on_disturbed_cluster(async |stage| {
        let pod = count(&stage, "count").await;
        pod.ready().await;
        let mut client = connect(pod.address()).unwrap();

        let fault = stage.bed().without_api_server().unwrap();
        stage
            .client()
            .apiserver_version()
            .await
            .expect_err("nobody is there to answer");
        evaluate(&mut client, "count", resource_list(&[], 1))
            .await
            .unwrap();

        fault.heal().unwrap();
        stage.client().apiserver_version().await.unwrap();
    });
}

#[test]
fn no_pod_starts_until_the_kubelet_is_back() {
    on_disturbed_cluster(async |stage| {
        let fault = stage.bed().without_kubelet().unwrap();
        let pod = count(&stage, "count").await;
        let status = pod.scheduled().await.status.unwrap();
        assert_eq!(status.container_statuses, None);

        fault.heal().unwrap();
        pod.ready().await;
    });
}

#[test]
fn a_paused_container_answers_after_it_is_resumed() {
    on_cluster(async |stage| {
        let pod = count(&stage, "count").await;
        pod.ready().await;
        let mut client = connect(pod.address()).unwrap();
        evaluate(&mut client, "count", resource_list(&[], 1))
            .await
            .unwrap();

        let container = pod.container().await;
        let fault = stage.bed().with_paused_container(&container).unwrap();
        let late = evaluate_within(SHORT, &mut client, "count", resource_list(&[], 1)).await;
        assert!(is_too_late(late.unwrap_err().code()));

        fault.heal().unwrap();
        evaluate(&mut client, "count", resource_list(&[], 1))
            .await
            .unwrap();
    });
}

#[test]
fn a_pod_without_network_answers_after_its_network_is_restored() {
    on_cluster(async |stage| {
        let pod = count(&stage, "count").await;
        pod.ready().await;
        let container = pod.container().await;
        let fault = stage.bed().with_cut_network(&container).unwrap();
        let mut client = connect(pod.address()).unwrap();
        let lost = evaluate_within(SHORT, &mut client, "count", resource_list(&[], 1)).await;
        assert!(is_too_late(lost.unwrap_err().code()));

        fault.heal().unwrap();
        let mut client = connect(pod.address()).unwrap();
        evaluate(&mut client, "count", resource_list(&[], 1))
            .await
            .unwrap();
    });
}

#[test]
fn the_slow_registry_delays_a_pull() {
    on_cluster(async |stage| {
        let latency = Duration::from_secs(2);
        let pace = Pace {
            latency,
            bytes_per_second: 50_000_000,
        };
        let slow = stage.bed().slow_registry(pace).unwrap();
        let image = format!("{}/functions/count:v1", slow.host());
        let started = Instant::now();
        let entrypoint = ["/function.sh"];
        let pod =
            FunctionPod::create(&stage, "slow", &image, &entrypoint, Injection::ImageVolume).await;
        pod.ready().await;
        assert!(started.elapsed() >= latency, "{:?}", started.elapsed());
    });
}

#[test]
fn an_expired_password_fails_pulls_until_it_is_renewed() {
    on_disturbed_cluster(async |stage| {
        let registry = stage.bed().private_registry();
        let image = format!("{}/functions/count:v1", registry.host);
        let entrypoint = ["/function.sh"];
        stage
            .pull_secret("login", &registry.user, &registry.password)
            .await;

        let fault = stage.bed().with_expired_registry_password().unwrap();
        let refused =
            FunctionPod::create_private(&stage, "refused", &image, &entrypoint, "login").await;
        let pod = refused.waiting_with_reason("ErrImagePull").await;
        let state = format!("{:?}", pod.status);
        assert!(
            state.contains("401") || state.contains("unauthorized"),
            "{state}"
        );

        fault.heal().unwrap();
        let taken =
            FunctionPod::create_private(&stage, "taken", &image, &entrypoint, "login").await;
        taken.ready().await;
    });
}

/// Returns whether the deadline has passed, on the client's side or on the server's.
fn is_too_late(code: Code) -> bool {
    matches!(code, Code::DeadlineExceeded | Code::Cancelled)
}
