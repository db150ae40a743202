//! Discovery of pods by announcement or watch, and connections directly or through a service.

use std::net::Ipv4Addr;

use e2e::{
    ANNOUNCE_FLAGS, Runner, Stage, connect, evaluate, eventually, function_container,
    function_pods, function_services, install_definitions, is_ready, on_cluster, resource_list,
    service_of, store_template,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::PostParams};
use runner_cluster::objects::ServiceTemplate;
use runner_proto::{
    announce::{AnnounceRequest, announcements_client::AnnouncementsClient},
    runner_status::{Pod as PodStatus, pod::Way},
};
use runner_test_support::free_address;
use serde_json::json;
use tonic::{Code, transport::Endpoint};

const COUNT: &str = "functions/count";
/// Flag with an unused address: calls to it are refused at once.
const NOBODY: &str = "--announce-address=198.18.255.250";

async fn count(stage: &Stage, runner: &Runner) {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 3)).await;
    answer.expect("the function answers");
}

fn steps(pod: &PodStatus) -> Vec<&str> {
    pod.start.iter().map(|step| &*step.step).collect()
}

/// Returns the announcement that the pod's environment contains.
fn announcement(pod: &Pod) -> AnnounceRequest {
    let spec = pod.spec.as_ref().expect("a spec");
    let given = |name: &str| {
        let mut all = spec
            .containers
            .iter()
            .flat_map(|it| it.env.iter().flatten());
        let found = all.find(|variable| variable.name == name);
        found
            .and_then(|variable| variable.value.clone())
            .expect("a variable")
    };
    AnnounceRequest {
        pod: given("KRM_WRAPPER_SLOT"),
        token: given("KRM_WRAPPER_TOKEN"),
        address: "198.18.0.1:9446".to_owned(),
    }
}

/// Sends an announcement and returns the code of the response.
async fn announce(port: u16, announcement: AnnounceRequest) -> Code {
    let endpoint = Endpoint::from_shared(format!("http://{}:{port}", Ipv4Addr::LOCALHOST));
    let channel = endpoint.expect("an address").connect_lazy();
    let answer = AnnouncementsClient::new(channel)
        .announce(announcement)
        .await;
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

/// Waits until the runner's status, which may be a moment old, shows this number of refusals.
async fn refused(runner: &Runner, times: u64) {
    let refusals = async || {
        let pods = runner.status().await.pod.expect("the pod runtime is on");
        pods.announcements_refused
    };
    eventually("the refusals", async || refusals().await >= times).await;
    assert_eq!(refusals().await, times);
}

#[test]
fn uses_a_pod_that_announces_itself() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &runner).await;
        // The watch may have been faster; the announcement is sent all the same.
        eventually("the announcement", async || {
            steps(&runner.only_pod().await).contains(&"listening")
        })
        .await;
        let pod = runner.only_pod().await;
        let steps = steps(&pod);
        for step in ["metadata", "created", "ready", "answered"] {
            assert!(steps.contains(&step), "{step} is not among {steps:?}");
        }
        refused(&runner, 0).await;
    });
}

#[test]
fn finds_a_pod_by_the_watch_if_its_announcement_is_lost() {
    on_cluster(async |stage| {
        let runner = Runner::start(&stage, &[NOBODY, ANNOUNCE_FLAGS[1]]).await;
        count(&stage, &runner).await;
        let pod = runner.only_pod().await;
        let steps = steps(&pod);
        assert!(!steps.contains(&"listening"), "{steps:?}");
        for step in ["scheduled", "address", "ready", "answered"] {
            assert!(steps.contains(&step), "{step} is not among {steps:?}");
        }
    });
}

#[test]
fn false_and_repeated_announcements_are_refused_and_counted() {
    on_cluster(async |stage| {
        let port = free_address().port();
        let home = format!("--announce-port={port}");
        let runner = Runner::start(&stage, &[ANNOUNCE_FLAGS[0], &home]).await;
        count(&stage, &runner).await;
        let true_one = announcement(&function_pods(&stage).await[0]);

        let replayed = announce(port, true_one.clone()).await;
        assert_eq!(replayed, Code::PermissionDenied);
        let wrong = AnnounceRequest {
            token: "0".repeat(true_one.token.len()),
            ..true_one.clone()
        };
        assert_eq!(announce(port, wrong).await, Code::PermissionDenied);
        let nobodys = AnnounceRequest {
            pod: "no-such-pod".to_owned(),
            ..true_one.clone()
        };
        assert_eq!(announce(port, nobodys).await, Code::PermissionDenied);
        let malformed = AnnounceRequest {
            address: "nowhere".to_owned(),
            ..true_one
        };
        assert_eq!(announce(port, malformed).await, Code::InvalidArgument);

        refused(&runner, 3).await;
        count(&stage, &runner).await;
    });
}

#[test]
fn ignores_a_late_announcement() {
    on_cluster(async |stage| {
        let port = free_address().port();
        let home = format!("--announce-port={port}");
        let runner = Runner::start(&stage, &[NOBODY, &home]).await;
        count(&stage, &runner).await;
        let before = runner.only_pod().await.address;
        // The pod was found by the watch, so its token is unused.
        let late = announcement(&function_pods(&stage).await[0]);
        assert_eq!(announce(port, late.clone()).await, Code::PermissionDenied);
        assert_eq!(announce(port, late).await, Code::PermissionDenied);
        // The first announcement was valid, only late; the second one is a replay and counts.
        refused(&runner, 1).await;
        assert_eq!(runner.only_pod().await.address, before);
        count(&stage, &runner).await;
    });
}

#[test]
fn refuses_the_token_of_another_slot() {
    on_cluster(async |stage| {
        let port = free_address().port();
        let home = format!("--announce-port={port}");
        let runner = Runner::start(&stage, &[NOBODY, &home]).await;
        let (address, other) = (runner.address(), stage.image("functions/wait"));
        let one = async { count(&stage, &runner).await };
        let two = async {
            let mut client = connect(&address).expect("an address");
            let list = resource_list(&[], 1);
            let answer = evaluate(&mut client, &other, list).await;
            answer.expect("the function answers");
        };
        futures::join!(one, two, async {
            eventually("two pods", async || function_pods(&stage).await.len() == 2).await;
            let pods = function_pods(&stage).await;
            let stolen = AnnounceRequest {
                token: announcement(&pods[0]).token,
                ..announcement(&pods[1])
            };
            assert_eq!(announce(port, stolen).await, Code::PermissionDenied);
        });
    });
}

#[test]
fn injects_the_wrapper_by_init_container_container_or_image_volume() {
    on_cluster(async |stage| {
        let injected = async |how: &str| {
            let flag = format!("--wrapper-injection={how}");
            let runner = Runner::start_with_announcements(&stage, &[&flag]).await;
            count(&stage, &runner).await;
            let pod = function_pods(&stage).await.remove(0);
            e2e::delete_without_grace_period(&stage, &pod).await;
            let spec = pod.spec.expect("a spec");
            let volumes = spec.volumes.unwrap_or_default();
            let mounted = volumes.iter().any(|volume| volume.image.is_some());
            let init = spec.init_containers.unwrap_or_default();
            (init.len(), spec.containers.len(), mounted)
        };
        assert_eq!(injected("init").await, (1, 1, false));
        eventually("no pod", async || function_pods(&stage).await.is_empty()).await;
        assert_eq!(injected("container").await, (0, 2, false));
        eventually("no pod", async || function_pods(&stage).await.is_empty()).await;
        assert_eq!(injected("image").await, (0, 1, true));
        eventually("no pod", async || function_pods(&stage).await.is_empty()).await;
        assert_eq!(
            injected("auto").await,
            (0, 1, true),
            "the test bed has image volumes, and the template is the built-in one"
        );
    });
}

#[test]
fn falls_back_to_a_container_if_the_image_volume_cannot_be_used() {
    on_cluster(async |stage| {
        let wrapper = stage.bed().pinned_image("bad/linked-wrapper");
        let wrapper = wrapper.unwrap_or_else(|error| panic!("{error:#}"));
        let environment = [("WRAPPER_SERVER_IMAGE", wrapper.as_str())];
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            "--wrapper-injection=auto",
        ];
        let runner = Runner::start_in(&stage, &flags, &environment).await;
        // The first pod mounts the image, and its node cannot start the wrapper from there.
        count(&stage, &runner).await;
        let status = runner.status().await.pod.expect("the pod runtime is on");
        assert_eq!(status.wrapper_injection, "container");
        let reason = &status.wrapper_injection_reason;
        let expected = "a pod made with an image volume did not start";
        assert!(reason.contains(expected), "{reason}");
        eventually("one pod, with the wrapper in a container", async || {
            let pods = function_pods(&stage).await;
            let specs: Vec<_> = pods.iter().filter_map(|pod| pod.spec.as_ref()).collect();
            specs.len() == 1 && specs[0].containers.len() == 2
        })
        .await;
    });
}

#[test]
fn without_services_pods_are_called_directly() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &["--pod-connect=pod"]).await;
        count(&stage, &runner).await;
        assert!(function_services(&stage).await.is_empty());
        let pod = runner.only_pod().await;
        assert_eq!(pod.way(), Way::Pod);
        let shown = async || {
            let pod = function_pods(&stage).await.remove(0);
            pod.status.and_then(|status| status.pod_ip)
        };
        eventually("the pod's address", async || shown().await.is_some()).await;
        assert_eq!(shown().await.as_deref(), Some(&*pod.address));
    });
}

#[test]
fn calls_through_the_service_once_the_pod_is_ready() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        eventually("the way through the service", async || {
            count(&stage, &runner).await;
            runner.only_pod().await.way() == Way::Service
        })
        .await;
        assert!(is_ready(&function_pods(&stage).await[0]));
        count(&stage, &runner).await;
        assert_eq!(function_pods(&stage).await.len(), 1);
    });
}

#[test]
fn uses_only_the_service_if_pod_connect_is_service() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let runner = Runner::start_with_announcements(&stage, &["--pod-connect=service"]).await;
        count(&stage, &runner).await;
        let service = function_services(&stage).await.remove(0);
        let pod = runner.only_pod().await;
        assert_eq!(pod.way(), Way::Service);
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        assert_eq!(address.as_deref(), Some(&*pod.address));
    });
}

/// Stores templates for pods that are never ready, and for services with ready pods only.
///
/// A runner that bypasses the service would get a response.
async fn store_empty_services(stage: &Stage) {
    install_definitions(stage).await;
    let probe = json!({"readinessProbe": {"exec": {"command": ["/no/such/program"]}}});
    store_template(stage, json!({}), probe).await;
    let template = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template"},
        "template": {"spec": {"publishNotReadyAddresses": false}},
    });
    let template: ServiceTemplate = serde_json::from_value(template).expect("a template");
    let stored = stage.api().create(&PostParams::default(), &template).await;
    stored.expect("the cluster takes the template");
}

#[test]
fn a_service_without_an_endpoint_is_not_bypassed() {
    on_cluster(async |stage| {
        store_empty_services(&stage).await;
        let flags = ["--pod-connect=service", "--pod-ready-timeout=14s"];
        let runner = Runner::start_with_announcements(&stage, &flags).await;
        let (address, image) = (runner.address(), stage.image(COUNT));
        let call = tokio::spawn(async move {
            let mut client = connect(&address).expect("an address");
            evaluate(&mut client, &image, resource_list(&[], 1)).await
        });
        eventually("a running function", async || {
            let pods = function_pods(&stage).await;
            pods.iter().any(|pod| function_container(pod).is_some())
        })
        .await;
        let answer = call.await.expect("the caller does not panic");
        let status = answer.expect_err("there is no way to the pod");
        assert_eq!(status.code(), Code::Unavailable, "{status}");
    });
}

#[test]
fn a_call_does_not_wait_for_the_service() {
    on_cluster(async |stage| {
        store_empty_services(&stage).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        count(&stage, &runner).await;
        let pod = function_pods(&stage).await.remove(0);
        let services = function_services(&stage).await;
        assert_eq!(services[0].name_any(), service_of(&pod));
        assert_eq!(runner.only_pod().await.way(), Way::Pod);
    });
}
