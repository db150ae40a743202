//! The runner inside the cluster, installed from `deploy/` as an operator does.
//!
//! Everything is applied as shipped except for names. The two namespaces are replaced by the test's
//! own, so that tests can run in parallel; images by those of the test bed; and the registry, which
//! nodes reach on loopback, by an address that pods can reach.

mod callers;
mod dev_overlay;
mod kubectl;
mod permissions;
mod porch;
mod registry;

use std::{net::SocketAddr, path::PathBuf};

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use testbed::{Testbed, addresses::NODE};
use tokio::net::{TcpListener, TcpStream};

pub use callers::Callers;
pub use dev_overlay::{DevOverlay, Forwarded};
pub use permissions::{Permission, granted, permissions};
pub use porch::{Installation, Manifest};
pub use registry::NamedRegistry;

use crate::{
    Stage, {LIMIT, eventually},
};

const NAME: &str = "function-runner";

/// An installed runner, which is deleted with the stage.
pub struct Deployment {
    stage: Stage,
    namespace: String,
}

// === impl Deployment ===

impl Deployment {
    /// Applies a directory under `deploy` with additional flags and waits for the rollout.
    pub async fn install(stage: &Stage, directory: &str, flags: &[&str]) -> Self {
        let deployment = Self::prepare(stage).await;
        deployment.apply(directory, flags).await;
        deployment.rolled_out().await;
        deployment
    }

    /// Creates the runner's namespace without any objects.
    pub async fn prepare(stage: &Stage) -> Self {
        let namespace = format!("{}-runner", stage.namespace());
        let namespaces: Api<Namespace> = Api::all(stage.client());
        let own = namespaces.get(stage.namespace()).await;
        let own = own.expect("the stage has a namespace");
        // Garbage collection deletes the namespace together with the stage's.
        let fresh = json!({"metadata": {
            "name": namespace,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Namespace",
                "name": stage.namespace(), "uid": own.metadata.uid,
            }],
        }});
        let fresh = serde_json::from_value(fresh).expect("a namespace");
        let create = kube::api::PostParams::default();
        let made = namespaces.create(&create, &fresh).await;
        made.expect("the API server accepts a namespace");
        Self {
            stage: stage.clone(),
            namespace,
        }
    }

    /// Returns the namespace of the runner; functions are in the stage's.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Applies a directory under `deploy` with additional flags.
    pub async fn apply(&self, directory: &str, flags: &[&str]) {
        let registry = reachable_registry(self.stage.bed()).await;
        let open = self.stage.bed().open_registry();
        let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        flags.push(format!("--registry-mirror={open}={registry}"));
        flags.push(format!("--insecure-registry={registry}"));
        let mut objects = self.rendered(directory).await;
        for object in &mut objects {
            if object["kind"] == "Deployment" {
                let container = &mut object["spec"]["template"]["spec"]["containers"][0];
                let args = container["args"].as_array_mut().expect("arguments");
                args.extend(flags.iter().cloned().map(Value::String));
            }
        }
        self.submit("apply", &objects).await;
    }

    /// Passes objects to `kubectl apply` or `kubectl create`.
    pub async fn submit(&self, verb: &str, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.kubectl(&[verb, "-f", "-"], Some(&list.to_string()))
            .await;
    }

    /// Returns the objects of a directory under `deploy`, with the names of this test.
    pub async fn rendered(&self, directory: &str) -> Vec<Value> {
        let directory = deploy().join(directory);
        let directory = directory.to_str().expect("a path in UTF-8");
        let text = self.kubectl(&["kustomize", directory], None).await;
        let image = |name| {
            let pinned = self.stage.bed().pinned_image(name);
            pinned.unwrap_or_else(|error| panic!("{error:#}"))
        };
        let mut text = text
            .replace("porch-fn-system", self.stage.namespace())
            .replace("porch-system", &self.namespace);
        for name in [NAME, "wrapper-server"] {
            for shipped in [
                format!("localhost:5000/{name}:dev"),
                format!("ghcr.io/krm-function-runner/{name}:v0.1.0"),
            ] {
                text = text.replace(&shipped, &image(name));
            }
        }
        documents(&text)
    }

    /// Waits until every replica of the newest version is ready and the service has an endpoint.
    ///
    /// kube-proxy receives the endpoints later than the rollout status.
    pub async fn rolled_out(&self) {
        let limit = format!("--timeout={}s", LIMIT.as_secs());
        let name = format!("deployment/{NAME}");
        self.kubectl_in_namespace(&["rollout", "status", &name, &limit])
            .await;
        let address = self.address().await;
        eventually("a service with an endpoint", async || {
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
    }

    /// Waits until at most `count` of the runner's pods exist, including terminating ones.
    pub async fn wait_for_at_most_pods(&self, count: usize) {
        let pods: Api<Pod> = Api::namespaced(self.stage.client(), &self.namespace);
        eventually("the old pods are gone", async || {
            let list = pods.list(&ListParams::default()).await;
            list.expect("pods can be listed").items.len() <= count
        })
        .await;
    }

    /// Runs kubectl in the runner's namespace, requires success and returns its output.
    pub async fn kubectl_in_namespace(&self, arguments: &[&str]) -> String {
        let mut all = vec!["--namespace", &self.namespace];
        all.extend(arguments);
        self.kubectl(&all, None).await
    }

    /// Returns host and port of the runner's service, which this machine can reach like a pod.
    pub async fn address(&self) -> String {
        let services: Api<Service> = Api::namespaced(self.stage.client(), &self.namespace);
        let service = services.get(NAME).await.expect("the service exists");
        let spec = service.spec.expect("a service has a spec");
        let address = spec.cluster_ip.expect("a ClusterIP");
        let port = spec.ports.expect("ports").first().expect("a port").port;
        format!("{address}:{port}")
    }

    async fn kubectl(&self, arguments: &[&str], input: Option<&str>) -> String {
        kubectl::kubectl(self.stage.bed(), arguments, input).await
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let label = format!("app={NAME}");
            kubectl::report(self.stage.bed(), &self.namespace, &label);
        }
    }
}

/// Starts a proxy to the open registry that pods can reach, for the duration of the test.
async fn reachable_registry(bed: &Testbed) -> SocketAddr {
    let listener = TcpListener::bind((NODE, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let registry = bed.open_registry();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let registry = registry.clone();
            tokio::spawn(async move {
                if let Ok(mut server) = TcpStream::connect(registry).await {
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    address
}

/// Returns the directory `deploy`.
#[must_use]
pub fn deploy() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy"))
}

/// Returns the documents of a YAML stream.
#[must_use]
pub fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n")
        .filter(|document| !document.trim().is_empty())
        .map(|document| serde_saphyr::from_str(document).expect("a YAML document"))
        .filter(|document: &Value| !document.is_null())
        .collect()
}
