//! Tests of the driver's requests to the API server that keep pods and services in pairs.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use runner_cluster::{
    IMAGE_LABEL, Injection, InjectionPolicy, RenderOptions, TemplateObjects, TemplateSource,
};
use runner_config::{Binaries, Configuration, FileOptions, Wanted};
use runner_pod::{Connect, Pod, PodOptions};
use runner_pool::{Limits, Settings};
use runner_registry::{Options, Registry};
use runner_test_support::{ApiRequest, LIMIT, api_server, refusal};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Returns a client of an API server that lists these objects, shows no changes to them, and
/// reports requests for changes.
fn server(pods: Value, services: Value) -> (kube::Client, mpsc::UnboundedReceiver<ApiRequest>) {
    let (sender, changes) = mpsc::unbounded_channel();
    let list = |items: &Value| {
        json!({"kind": "List", "apiVersion": "v1",
               "metadata": {"resourceVersion": "9"}, "items": items})
    };
    let (service, _) = api_server(move |request| {
        let (method, path, body) = request;
        match method.as_str() {
            "GET" if path.contains("watch=true") => None,
            "GET" if path.contains("/pods?") => Some((200, list(&pods))),
            "GET" if path.contains("/services?") => Some((200, list(&services))),
            "GET" => Some(refusal(403, "forbidden")),
            _ => {
                let _ = sender.send(request.clone());
                Some((200, body.clone()))
            }
        }
    });
    (kube::Client::new(service, "fns"), changes)
}

fn start(client: kube::Client) -> Pod {
    let configuration = Configuration::load(FileOptions {
        functions_dir: PathBuf::from("/nonexistent"),
        config: PathBuf::from("/nonexistent"),
        config_wanted: Wanted::No,
        pod_cache_config: PathBuf::from("/nonexistent"),
        pod_cache_wanted: Wanted::No,
        default_prefix: "ghcr.io/x".to_owned(),
        binaries: Binaries::Trust,
    });
    let options = PodOptions {
        templates: TemplateSource::Objects(TemplateObjects::new(client.clone(), "fns")),
        client,
        namespace: "fns".to_owned(),
        cluster_domain: "cluster.local".to_owned(),
        render: RenderOptions::default(),
        injection: InjectionPolicy::Fixed(Injection::Init),
        connect: Connect::Auto,
        limits: Limits::default(),
        defaults: Settings::default(),
        announcing: None,
        message_limit: 6_291_456,
        function_timeout: LIMIT,
        unschedulable_timeout: LIMIT,
        scan_interval: Duration::from_secs(1),
        warm_up: false,
        tracing: None,
    };
    let registry = Registry::new(Options::default()).expect("a registry");
    Pod::start(options, configuration.expect("no files"), registry)
}

fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "6"},
        "spec": {"clusterIP": "198.19.0.1", "selector": {IMAGE_LABEL: name}},
    })
}

/// The service of a pod has the name of its slot, not that of the pod. A service that selects no
/// pod is removed.
#[tokio::test]
async fn a_pod_gets_the_service_of_its_slot_and_a_service_without_a_pod_is_removed() {
    let pod = json!({
        "metadata": {"name": "fn-v1-1-abcd-x7k2p", "uid": "u1", "resourceVersion": "5",
                     "labels": {IMAGE_LABEL: "fn-v1-1-abcd"}},
        "spec": {"containers": [{"name": "function", "image": "ghcr.io/x/fn:v1"}]},
    });
    let services = json!([service("fn-v1-1-abcd-x7k2p")]);
    let (client, mut changes) = server(json!([pod]), services);
    let _pods = start(client);
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        let change = tokio::time::timeout(LIMIT, changes.recv()).await;
        let (method, path, body) = change.expect("in time").expect("a request");
        if !path.contains("/services") {
            continue;
        }
        if method == "POST" {
            assert_eq!(body["metadata"]["name"], "fn-v1-1-abcd");
            assert_eq!(body["spec"]["selector"][IMAGE_LABEL], "fn-v1-1-abcd");
        } else {
            assert_eq!(method, "DELETE");
            assert!(path.contains("/services/fn-v1-1-abcd-x7k2p"), "{path}");
        }
        seen.insert(method);
    }
}
