//! An installation of Porch's function runner, applied under its own names with only the two images
//! replaced.
//!
//! The namespaces and definitions of Porch are unique in a cluster, so a test needs the cluster
//! alone.

use std::{fs, path::PathBuf, process::Stdio};

use k8s_openapi::{
    api::core::v1::{Event, Pod, Service},
    jiff::Timestamp,
};
use kube::{Api, api::ListParams};
use runner_proto::health::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::transport::Channel;

use super::{
    NAME, documents,
    kubectl::{command, kubectl, report},
    registry::NamedRegistry,
};
use crate::{
    Stage, {LIMIT, eventually},
};

/// Names of the runner's image in Porch's manifests and in the requirement.
const RUNNER_IMAGES: [&str; 3] = [
    "ghcr.io/kptdev/porch-function-runner:latest",
    "docker.io/nephio/porch-function-runner:latest",
    "image: function-runner:latest",
];
/// Names of the wrapper's image in the same documents.
const WRAPPER_IMAGES: [&str; 3] = [
    "ghcr.io/kptdev/porch-wrapper-server:latest",
    "docker.io/nephio/porch-wrapper-server:latest",
    "wrapper-server:latest",
];
const IMAGE_LABEL: &str = "fn.kpt.dev/image";
const NAMESPACE: &str = "porch-system";
const FUNCTION_NAMESPACE: &str = "porch-fn-system";
const NAMESPACES: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: porch-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: porch-fn-system}
";

/// A YAML stream of objects and the name it is reported by.
#[derive(Clone, Debug)]
pub struct Manifest {
    name: String,
    text: String,
}

/// An installation, until this value is dropped.
pub struct Installation {
    stage: Stage,
    manifests: Vec<Manifest>,
    registry: NamedRegistry,
}

// === impl Manifest ===

impl Manifest {
    /// Returns a manifest of this package.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Reads files of `../shared`, a directory beside the checkout on some machines.
    ///
    /// Prints a line and returns `None` if the directory is missing.
    ///
    /// # Panics
    ///
    /// If the directory exists and a file does not.
    #[must_use]
    pub fn shared(paths: &[&str]) -> Option<Vec<Self>> {
        let shared = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
        if !shared.is_dir() {
            eprintln!("skipped: ../shared is missing; the same is tested with objects of our own");
            return None;
        }
        let read = |path: &&str| {
            let text = fs::read_to_string(shared.join(path));
            Self::new(
                path,
                &text.unwrap_or_else(|error| panic!("{path}: {error}")),
            )
        };
        Some(paths.iter().map(read).collect())
    }

    /// Returns the manifest with a changed pod specification in its Deployment.
    ///
    /// A manifest without a Deployment stays unchanged.
    #[must_use]
    pub fn with_deployment(mut self, change: impl Fn(&mut Value)) -> Self {
        let mut objects = self.objects();
        let deployment = objects
            .iter_mut()
            .find(|object| object["kind"] == "Deployment");
        if let Some(deployment) = deployment {
            change(&mut deployment["spec"]["template"]["spec"]);
            // JSON is also YAML.
            let texts: Vec<_> = objects.iter().map(Value::to_string).collect();
            self.text = texts.join("\n---\n");
        }
        self
    }

    /// Returns the text of the manifest.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn objects(&self) -> Vec<Value> {
        documents(&self.text)
    }

    fn has_namespaces(&self) -> bool {
        let objects = self.objects();
        objects.iter().any(|object| object["kind"] == "Namespace")
    }

    fn definitions(&self) -> Vec<String> {
        let objects = self.objects();
        let definitions = objects
            .iter()
            .filter(|object| object["kind"] == "CustomResourceDefinition");
        definitions
            .filter_map(|object| object["metadata"]["name"].as_str())
            .map(|name| format!("customresourcedefinition/{name}"))
            .collect()
    }
}

// === impl Installation ===

impl Installation {
    /// Applies manifests in their order to a cluster without Porch, and waits for the rollout.
    ///
    /// Definitions exist only if a manifest has them. The namespaces are created first if no
    /// manifest has them.
    pub async fn apply(stage: &Stage, manifests: Vec<Manifest>) -> Self {
        assert!(remove(stage), "the cluster can be emptied");
        let this = Self {
            stage: stage.clone(),
            manifests,
            registry: NamedRegistry::open(stage).await,
        };
        if !this.manifests.iter().any(Manifest::has_namespaces) {
            let input = Some(NAMESPACES);
            kubectl(stage.bed(), &["apply", "-f", "-"], input).await;
        }
        for manifest in &this.manifests {
            this.apply_one(manifest).await;
        }
        this.rolled_out().await;
        this
    }

    /// Returns the reference of a function's image that this installation can pull.
    #[must_use]
    pub fn function(&self, name: &str) -> String {
        self.registry.function(name)
    }

    /// Returns all objects of the manifests.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        self.manifests.iter().flat_map(Manifest::objects).collect()
    }

    /// Returns host and port of the runner's Service, or of its only pod if there is no Service.
    pub async fn address(&self) -> String {
        let services: Api<Service> = Api::namespaced(self.stage.client(), NAMESPACE);
        let service = services.get_opt(NAME).await.expect("services can be read");
        if let Some(address) = service.and_then(|it| it.spec).and_then(|it| it.cluster_ip) {
            return format!("{address}:9445");
        }
        let pods = self.runner_pods().await;
        let address = pods
            .first()
            .and_then(|pod| pod.status.as_ref()?.pod_ip.as_ref());
        format!("{}:9445", address.expect("a pod with an address"))
    }

    /// Returns the number of restarts of the runner's containers.
    pub async fn restarts(&self) -> i32 {
        let pods = self.runner_pods().await;
        let statuses = pods.iter().filter_map(|pod| pod.status.as_ref());
        let containers = statuses.flat_map(|status| status.container_statuses.iter().flatten());
        containers.map(|container| container.restart_count).sum()
    }

    /// Returns the time in seconds since the youngest container of the runner was started.
    ///
    /// Returns `None` if a container does not run.
    pub async fn running_seconds(&self) -> Option<i64> {
        let pods = self.runner_pods().await;
        let statuses = pods.iter().filter_map(|pod| pod.status.as_ref());
        let containers = statuses.flat_map(|status| status.container_statuses.iter().flatten());
        let ages = containers.map(|container| {
            let running = container.state.as_ref()?.running.as_ref()?;
            let started = running.started_at.as_ref()?.0;
            Some(Timestamp::now().as_second() - started.as_second())
        });
        ages.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Returns the kubelet's messages about failed probes of the runner.
    pub async fn failed_probes(&self) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.stage.client(), NAMESPACE);
        let unhealthy = ListParams::default().fields("reason=Unhealthy");
        let list = events.list(&unhealthy).await;
        let list = list.expect("events can be listed");
        list.into_iter().filter_map(|event| event.message).collect()
    }

    /// Returns the health of a service of the runner.
    pub async fn health(&self, service: &str) -> ServingStatus {
        let channel = Channel::from_shared(format!("http://{}", self.address().await));
        let channel = channel.expect("an address").connect_lazy();
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = HealthClient::new(channel).check(request).await;
        let answer = answer.unwrap_or_else(|status| panic!("health of {service:?}: {status}"));
        answer.into_inner().status()
    }

    /// Returns the function pods.
    pub async fn function_pods(&self) -> Vec<Pod> {
        self.pods(FUNCTION_NAMESPACE, IMAGE_LABEL).await
    }

    /// Returns the Services of the namespace of function pods.
    pub async fn function_services(&self) -> Vec<Service> {
        let services: Api<Service> = Api::namespaced(self.stage.client(), FUNCTION_NAMESPACE);
        let list = services.list(&ListParams::default()).await;
        list.expect("services can be listed").items
    }

    /// Returns the runner's log.
    pub async fn log(&self) -> String {
        let arguments = ["-n", NAMESPACE, "logs", "deployment/function-runner"];
        kubectl(self.stage.bed(), &arguments, None).await
    }

    /// Returns the metrics of every runner and of every function pod whose environment asks for a
    /// Prometheus exporter on all addresses.
    pub async fn metrics(&self) -> Vec<String> {
        let mut pods = self.runner_pods().await;
        pods.extend(self.function_pods().await);
        let mut texts = Vec::new();
        for pod in pods.iter().filter(|pod| exports_metrics(pod)) {
            let address = pod
                .status
                .as_ref()
                .and_then(|status| status.pod_ip.as_ref());
            let address = format!("{}:9464", address.expect("a pod with an address"));
            texts.push(scrape(&address).await);
        }
        texts
    }

    /// Returns the FunctionConfig objects from the API server.
    pub async fn function_configs(&self) -> Vec<Value> {
        let get = [
            "-n",
            FUNCTION_NAMESPACE,
            "get",
            "functionconfigs",
            "-o=json",
        ];
        let text = kubectl(self.stage.bed(), &get, None).await;
        let list: Value = serde_json::from_str(&text).expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn runner_pods(&self) -> Vec<Pod> {
        self.pods(NAMESPACE, "app=function-runner").await
    }

    async fn pods(&self, namespace: &str, label: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.stage.client(), namespace);
        let labelled = ListParams::default().labels(label);
        let list = pods.list(&labelled).await;
        list.expect("pods can be listed").items
    }

    async fn apply_one(&self, manifest: &Manifest) {
        let bed = self.stage.bed();
        let image = |name| {
            bed.pinned_image(name)
                .unwrap_or_else(|error| panic!("{error:#}"))
        };
        let mut text = manifest.text.clone();
        for (names, image) in [
            (RUNNER_IMAGES, image(NAME)),
            (WRAPPER_IMAGES, image("wrapper-server")),
        ] {
            for name in names {
                // The key is part of the pattern where the name alone is not unique.
                let key = if name.starts_with("image: ") {
                    "image: "
                } else {
                    ""
                };
                text = text.replace(name, &format!("{key}{image}"));
            }
        }
        eprintln!("applying {}", manifest.name);
        // Large definitions do not fit into the annotation of a client-side apply.
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        kubectl(bed, &apply, Some(&text)).await;
        for definition in manifest.definitions() {
            let wait = ["wait", "--for=condition=Established", &definition];
            kubectl(bed, &wait, None).await;
        }
    }

    async fn rolled_out(&self) {
        let limit = format!("--timeout={}s", LIMIT.as_secs());
        let name = format!("deployment/{NAME}");
        let status = ["-n", NAMESPACE, "rollout", "status", &name, &limit];
        kubectl(self.stage.bed(), &status, None).await;
        let address = self.address().await;
        eventually("a runner that accepts connections", async || {
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let bed = self.stage.bed();
        if std::thread::panicking() {
            report(bed, NAMESPACE, &format!("app={NAME}"));
            report(bed, FUNCTION_NAMESPACE, IMAGE_LABEL);
        }
        if !remove(&self.stage) {
            eprintln!("cannot delete the objects of the installation");
        }
        // Other tests rely on the definitions of this project.
        let _ = command(bed).and_then(|mut kubectl| {
            kubectl.args([
                "apply",
                "--server-side",
                "--force-conflicts",
                "-k",
                "deploy/crds",
            ]);
            Ok(kubectl.stdout(Stdio::null()).status()?)
        });
    }
}

fn exports_metrics(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| {
        variable.name == "OTEL_EXPORTER_PROMETHEUS_HOST"
            && variable.value.as_deref() == Some("0.0.0.0")
    })
}

/// Returns the metrics that a Prometheus server reads at an address.
pub(super) async fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("metrics");
    let request = b"GET /metrics HTTP/1.0\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut text = String::new();
    let read = stream.read_to_string(&mut text).await;
    read.expect("an answer");
    text
}

/// Deletes the namespaces and definitions of Porch; returns whether they are gone.
fn remove(stage: &Stage) -> bool {
    let limit = format!("--timeout={}s", LIMIT.as_secs());
    let delete = |arguments: &[&str]| {
        let deleted = command(stage.bed()).and_then(|mut kubectl| {
            kubectl.arg("delete").args(arguments);
            kubectl.args(["--ignore-not-found", &limit]);
            Ok(kubectl.stdout(Stdio::null()).status()?)
        });
        deleted.is_ok_and(|status| status.success())
    };
    // In this order, because a namespace waits for objects whose definition is being deleted.
    delete(&["namespace", NAMESPACE, FUNCTION_NAMESPACE]) && delete(&["-k", "deploy/crds"])
}
