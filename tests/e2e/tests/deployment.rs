//! The runner in the cluster, installed from `deploy/`: its permissions are sufficient, a rolling
//! update fails no evaluation, and it can replace Porch's runner.

use std::collections::BTreeSet;

use e2e::{
    Stage, connect,
    deployment::{Callers, Deployment, DevOverlay, deploy, documents, granted, permissions},
    evaluate, eventually, on_cluster, on_disturbed_cluster, resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

const COUNT: &str = "functions/count";

async fn function_pods(stage: &Stage) -> Vec<Pod> {
    let labelled = ListParams::default().labels("fn.kpt.dev/image");
    let list = stage.api::<Pod>().list(&labelled).await;
    list.expect("pods can be listed").items
}

/// Evaluates the count function through the runner's service and requires success.
async fn count(stage: &Stage, deployment: &Deployment) {
    let mut client = connect(&deployment.address().await).expect("an address");
    let input = resource_list(&[], 3);
    let answer = evaluate(&mut client, &stage.image(COUNT), input.clone()).await;
    let answer = answer.expect("the function answers");
    assert_eq!(answer.resource_list, input.as_bytes());
}

#[test]
fn the_overlay_for_developers_works_as_it_is_on_an_empty_cluster() {
    on_disturbed_cluster(async |stage| {
        let installed = DevOverlay::install(&stage).await;
        let image = installed.function("count");

        let forwarded = installed.forward(9445).await;
        let mut client = connect(forwarded.address()).expect("an address");
        let input = resource_list(&[], 3);
        let answer = evaluate(&mut client, &image, input.clone()).await;
        let answer = answer.expect("the function answers on this machine");
        assert_eq!(answer.resource_list, input.as_bytes());

        let pods: Api<Pod> = Api::namespaced(stage.client(), DevOverlay::NAMESPACE);
        let client = client_pod(&stage, &image);
        let made = pods.create(&PostParams::default(), &client).await;
        made.expect("the cluster takes the client");
        let mut phase = None;
        eventually("a client that ended", async || {
            let client = pods.get("client").await.expect("the client is there");
            phase = client.status.and_then(|status| status.phase);
            matches!(phase.as_deref(), Some("Succeeded" | "Failed"))
        })
        .await;
        assert_eq!(phase.as_deref(), Some("Succeeded"));

        let functions: Api<Pod> = Api::namespaced(stage.client(), DevOverlay::FUNCTION_NAMESPACE);
        let made = functions.list(&ListParams::default()).await;
        let made = made.expect("pods can be listed").items;
        assert_eq!(made.len(), 1);
        let mounts = made[0].spec.as_ref().expect("a spec").volumes.as_ref();
        let names: Vec<_> = mounts.into_iter().flatten().map(|it| &it.name).collect();
        assert_eq!(names, ["wrapper-server-tools"], "no token is mounted");
        let metrics = installed.metrics().await;
        assert!(
            metrics.lines().any(|line| {
                line.starts_with("function_runner_pods_announcements_total")
                    && line.contains("accepted")
                    && line.ends_with(" 1")
            }),
            "the wrapper sent an announcement: {metrics}"
        );
        may_do_what_is_shipped_and_no_more(&stage, &installed).await;
    });
}

/// Returns a client pod for Porch's namespace.
///
/// The namespace enforces the restricted level, and the network policy lets its pods call the
/// runner.
fn client_pod(stage: &Stage, image: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": "client"},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "client",
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
                "image": stage.image("tools/callers"),
                "args": [
                    "-address=function-runner.porch-system:9445",
                    format!("-image={image}"),
                    "-count=3",
                ],
            }],
        },
    });
    serde_json::from_value(pod).expect("a pod")
}

/// Checks that the runner uses the account of the Role, that the account has exactly the Role's
/// permissions, and that the log shows no missing one.
async fn may_do_what_is_shipped_and_no_more(stage: &Stage, installed: &DevOverlay) {
    let account = "-o=jsonpath={.items[*].spec.serviceAccountName}";
    let account = ["get", "pods", "-l", "app=function-runner", account];
    assert_eq!(
        installed.kubectl_in_namespace(&account).await,
        "porch-fn-runner"
    );

    let text = std::fs::read_to_string(deploy().join("runner/roles.yaml"));
    let shipped = documents(&text.expect("the Role is shipped"));
    let roles = shipped.iter().filter(|object| object["kind"] == "Role");
    let in_namespace = |namespace: &str| {
        let mut role = roles
            .clone()
            .filter(|role| role["metadata"]["namespace"] == namespace);
        permissions(&role.next().expect("a Role of the namespace")["rules"])
    };
    for (namespace, expected) in [
        (
            DevOverlay::FUNCTION_NAMESPACE,
            in_namespace(DevOverlay::FUNCTION_NAMESPACE),
        ),
        (DevOverlay::NAMESPACE, in_namespace(DevOverlay::NAMESPACE)),
        ("default", BTreeSet::new()),
    ] {
        let its = granted(stage, "porch-system:porch-fn-runner", namespace).await;
        let everybodys = granted(stage, "porch-system:default", namespace).await;
        assert_eq!(&its - &everybodys, expected, "in {namespace}");
    }
    let log = installed
        .kubectl_in_namespace(&["logs", "deployment/function-runner"])
        .await;
    assert!(!log.contains("orbidden"), "the Role suffices: {log}");
}

#[test]
fn a_rolling_update_fails_no_evaluation_and_keeps_the_pods() {
    on_cluster(async |stage| {
        let deployment = Deployment::install(&stage, "base", &[]).await;
        count(&stage, &deployment).await;
        let before = uids(&function_pods(&stage).await);
        let address = deployment.address().await;
        let callers = Callers::start(&address, &stage.image(COUNT), 20).await;
        deployment
            .kubectl_in_namespace(&["rollout", "restart", "deployment/function-runner"])
            .await;
        deployment.rolled_out().await;
        deployment.wait_for_at_most_pods(2).await;
        let said = callers.finish().await;
        assert!(said.contains(", 0 failed"), "{said}");
        assert_eq!(uids(&function_pods(&stage).await), before);
    });
}

fn uids(pods: &[Pod]) -> Vec<Option<String>> {
    let mut uids: Vec<_> = pods.iter().map(ResourceExt::uid).collect();
    uids.sort();
    uids
}

/// Returns Porch's own runner as in its manifests, with exec probes or gRPC probes.
fn porchs_own(stage: &Stage, deployment: &Deployment, exec_probes: bool) -> Vec<Value> {
    let namespace = deployment.namespace();
    let check = if exec_probes {
        json!({"exec": {"command": ["/home/nonroot/grpc-health-probe", "-addr", "localhost:9445"]}})
    } else {
        json!({"grpc": {"port": 9445}, "initialDelaySeconds": 1})
    };
    let pinned = |name| stage.bed().pinned_image(name).expect("it was pushed");
    let labels = json!({"app": "function-runner"});
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "porch-fn-runner", "namespace": namespace},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "pod-cache-config", "namespace": namespace},
            "data": {"pod-cache-config.yaml": format!("{}: 30m\n", stage.image(COUNT))},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "function-runner", "namespace": namespace},
            "spec": {"selector": labels, "ports": [{"port": 9445, "targetPort": 9445}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "function-runner", "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "serviceAccountName": "porch-fn-runner",
                        "containers": [{
                            "name": "function-runner",
                            "image": pinned("function-runner"),
                            // Without the cluster: this runner has no permissions there and will be
                            // replaced.
                            "command": ["/home/nonroot/server", "--functions=/home/nonroot/functions",
                                        "--disable-runtimes=pod"],
                            "env": [{"name": "WRAPPER_SERVER_IMAGE", "value": "old/wrapper:v1"}],
                            "ports": [{"containerPort": 9445}],
                            "readinessProbe": check,
                            "livenessProbe": check,
                            "volumeMounts": [{"name": "cache", "mountPath": "/pod-cache-config"}],
                        }],
                        "volumes": [{"name": "cache", "configMap": {"name": "pod-cache-config"}}],
                    },
                },
            },
        }),
    ]
}

/// Creates Porch's own runner with a verb of kubectl, then replaces it with the overlay.
async fn take_over(stage: &Stage, verb: &str, exec_probes: bool) {
    let deployment = Deployment::prepare(stage).await;
    let old = porchs_own(stage, &deployment, exec_probes);
    deployment.submit(verb, &old).await;
    deployment.rolled_out().await;
    let address = deployment.address().await;
    let uid = deployment.kubectl_in_namespace(&[
        "get",
        "deployment",
        "-o=jsonpath={.items[*].metadata.uid}",
    ]);
    let uid = uid.await;

    deployment.apply("overlays/porch", &[]).await;
    deployment.rolled_out().await;
    assert_eq!(deployment.address().await, address, "clients need not know");
    let now = deployment.kubectl_in_namespace(&[
        "get",
        "deployment",
        "-o=jsonpath={.items[*].metadata.uid}",
    ]);
    assert_eq!(now.await, uid, "no second deployment");
    // The ConfigMap that existed before configures this function.
    eventually("a warm pod", async || function_pods(stage).await.len() == 1).await;
    count(stage, &deployment).await;
    assert_eq!(function_pods(stage).await.len(), 1);
}

#[test]
fn the_overlay_replaces_porchs_runner_that_was_applied() {
    on_cluster(async |stage| take_over(&stage, "apply", true).await);
}

#[test]
fn the_overlay_replaces_porchs_runner_that_was_created() {
    on_cluster(async |stage| take_over(&stage, "create", true).await);
}

#[test]
fn the_overlay_replaces_porchs_runner_with_grpc_probes() {
    on_cluster(async |stage| take_over(&stage, "create", false).await);
}

#[test]
fn functions_run_under_the_restricted_level_where_their_images_allow_it() {
    on_cluster(async |stage| {
        let deployment = Deployment::install(&stage, "overlays/restricted", &[]).await;
        let image = stage.image("functions/unprivileged");
        let mut client = connect(&deployment.address().await).expect("an address");
        let input = resource_list(&[], 1);
        let answer = evaluate(&mut client, &image, input.clone()).await;
        assert_eq!(answer.expect("it runs").resource_list, input.as_bytes());
        // The image of this function has no user.
        let refused = evaluate(&mut client, &stage.image(COUNT), input).await;
        let refused = refused.expect_err("root is not admitted");
        assert!(refused.message().contains("runAsNonRoot"), "{refused}");
    });
}

#[test]
fn functions_come_from_a_private_registry_with_the_credentials_in_a_secret() {
    on_cluster(async |stage| {
        let registry = stage.bed().private_registry();
        let read = |path| std::fs::read_to_string(path).expect("the test bed wrote it");
        let deployment = Deployment::prepare(&stage).await;
        let secret = |name: &str, kind: &str, key: &str, content: String| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": kind,
                "metadata": {"name": name, "namespace": deployment.namespace()},
                "stringData": {key: content},
            })
        };
        let secrets = [
            secret(
                "registry-credentials",
                "kubernetes.io/dockerconfigjson",
                ".dockerconfigjson",
                read(&registry.docker_config),
            ),
            secret("registry-ca", "Opaque", "ca.crt", read(&registry.ca)),
        ];
        deployment.submit("create", &secrets).await;
        deployment.apply("overlays/private-registry", &[]).await;
        deployment.rolled_out().await;
        let image = format!("{}/functions/count:v1", registry.host);
        let mut client = connect(&deployment.address().await).expect("an address");
        let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        answer.expect("the function answers");
    });
}

#[test]
fn inside_a_mesh_functions_are_reached_through_their_services() {
    on_cluster(async |stage| {
        let deployment = Deployment::install(&stage, "overlays/mesh", &[]).await;
        count(&stage, &deployment).await;
    });
}
