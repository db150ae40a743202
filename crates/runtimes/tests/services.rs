//! Tests of the driver's requests to the API server that keep pods and services in pairs.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use runner_cluster::{
    IMAGE_LABEL, Injection, InjectionPolicy, RenderOptions, TemplateObjects, TemplateSource,
};
use runner_config::{Binaries, Configuration, FileOptions, Wanted};
use runner_pool::{Limits, Settings};
use runner_registry::{Options, Registry};
use runner_runtimes::{Connect, Pod, PodOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const LIMIT: Duration = Duration::from_secs(60);

/// A request that changes an object: method, path, body.
type Change = (String, String, Value);

/// Returns a client of an API server that lists these objects, shows no changes to them, and
/// reports requests for changes.
fn api_server(pods: Value, services: Value) -> (kube::Client, mpsc::UnboundedReceiver<Change>) {
    let (sender, changes) = mpsc::unbounded_channel();
    let lists = Arc::new((pods, services));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (sender, lists) = (sender.clone(), lists.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let path = head.uri.to_string();
            let list = |items: &Value| {
                json!({"kind": "List", "apiVersion": "v1",
                       "metadata": {"resourceVersion": "9"}, "items": items})
            };
            let (code, answer) = match head.method.as_str() {
                "GET" if path.contains("watch=true") => std::future::pending().await,
                "GET" if path.contains("/pods?") => (200, list(&lists.0)),
                "GET" if path.contains("/services?") => (200, list(&lists.1)),
                "GET" => (
                    403,
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}),
                ),
                method => {
                    let _ = sender.send((method.to_owned(), path, body.clone()));
                    (200, body)
                }
            };
            let answer = Full::<Bytes>::from(answer.to_string());
            let answer = Response::builder().status(code).body(answer);
            Ok::<_, kube::Error>(answer.expect("a response"))
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
    let (client, mut changes) = api_server(json!([pod]), services);
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
