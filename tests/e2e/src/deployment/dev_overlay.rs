//! The overlay for developers on an empty cluster, installed with the documented commands.
//!
//! The overlay is applied unchanged, so its names are in use meanwhile and a test needs the cluster
//! alone. The test bed provides what the overlay expects: images under its names, and functions in
//! a [`NamedRegistry`].

use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams};
use serde_json::json;
use testbed::faults::Fault;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
};

use super::{
    NAME,
    kubectl::{command, kubectl, report},
    porch::scrape,
    registry::NamedRegistry,
};
use crate::{
    Stage, {LIMIT, eventually},
};

const OVERLAY: &str = "deploy/overlays/dev";
const IMAGES: &str = "localhost:5000";

/// The applied overlay, deleted completely when this value is dropped.
pub struct DevOverlay {
    stage: Stage,
    registry: NamedRegistry,
    _images: Fault<'static>,
}

/// A port of this machine that is forwarded to the runner's service.
pub struct Forwarded {
    address: String,
    _kubectl: Child,
    /// Output of kubectl, kept open because kubectl prints a line for every connection.
    _lines: BufReader<ChildStdout>,
}

// === impl DevOverlay ===

impl DevOverlay {
    /// Namespace of the runner.
    pub const NAMESPACE: &str = "porch-system";
    /// Namespace of functions.
    pub const FUNCTION_NAMESPACE: &str = "porch-fn-system";

    /// Applies the overlay to a cluster without it, and waits for the rollout.
    pub async fn install(stage: &Stage) -> Self {
        assert!(remove(stage), "the objects of the overlay can be deleted");
        let images = stage.bed().with_registry_named(IMAGES);
        let this = Self {
            stage: stage.clone(),
            registry: NamedRegistry::open(stage).await,
            _images: images.unwrap_or_else(|error| panic!("{error:#}")),
        };
        tokio::join!(this.apply(), this.pull_newest_wrapper());
        this
    }

    /// Returns a function's image under a name that nodes and pods can resolve.
    #[must_use]
    pub fn function(&self, name: &str) -> String {
        self.registry.function(name)
    }

    /// Runs kubectl in the runner's namespace, requires success and returns its output.
    pub async fn kubectl_in_namespace(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-n", Self::NAMESPACE];
        all.extend(arguments);
        self.kubectl(&all).await
    }

    /// Forwards a free port of this machine to a port of the runner.
    pub async fn forward(&self, port: u16) -> Forwarded {
        let kubectl = command(self.stage.bed()).expect("kubectl is built");
        let mut child = Command::from(kubectl)
            .args(["-n", Self::NAMESPACE, "port-forward", "svc/function-runner"])
            .arg(format!(":{port}"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        let mut lines = BufReader::new(stdout);
        let read = tokio::time::timeout(LIMIT, lines.read_line(&mut line)).await;
        read.expect("a port within the time limit")
            .expect("kubectl can be read");
        let address = line
            .strip_prefix("Forwarding from ")
            .and_then(|rest| rest.split(' ').next());
        Forwarded {
            address: address
                .unwrap_or_else(|| panic!("no port: {line}"))
                .to_owned(),
            _kubectl: child,
            _lines: lines,
        }
    }

    /// Returns the metrics of the only replica, as Prometheus reads them.
    pub async fn metrics(&self) -> String {
        let forwarded = self.forward(9464).await;
        scrape(forwarded.address()).await
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(self.stage.bed(), arguments, None).await
    }

    async fn apply(&self) {
        let applied = self.kubectl(&["apply", "-k", OVERLAY]).await;
        for line in applied.lines() {
            assert!(
                line.ends_with(" created"),
                "the object existed before: {line}"
            );
        }
        let limit = format!("--timeout={}s", LIMIT.as_secs());
        let status = ["rollout", "status", "deployment/function-runner", &limit];
        self.kubectl_in_namespace(&status).await;
    }

    /// Pulls the newest wrapper image to the node.
    ///
    /// The node of an empty cluster has no images. This node keeps images that it pulled under a
    /// tag, and function pods would get the wrapper of an earlier test.
    async fn pull_newest_wrapper(&self) {
        let pull = json!({"metadata": {"name": "pull"}, "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "pull", "image": format!("{IMAGES}/wrapper-server:dev"),
                "imagePullPolicy": "Always", "args": ["--version"],
            }],
        }});
        let pull: Pod = serde_json::from_value(pull).expect("a pod");
        let pods: Api<Pod> = self.stage.api();
        let made = pods.create(&PostParams::default(), &pull).await;
        made.expect("the API server accepts the pod");
        eventually("the newest wrapper on the node", async || {
            let pull = pods.get("pull").await.expect("the pod exists");
            let phase = pull.status.and_then(|status| status.phase);
            matches!(phase.as_deref(), Some("Succeeded" | "Failed"))
        })
        .await;
    }
}

impl Drop for DevOverlay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let bed = self.stage.bed();
            report(bed, Self::NAMESPACE, &format!("app={NAME}"));
            report(bed, Self::FUNCTION_NAMESPACE, "fn.kpt.dev/image");
        }
        if !remove(&self.stage) {
            eprintln!("cannot delete the objects of {OVERLAY}");
        }
        // Other tests need the definitions.
        let _ = command(self.stage.bed()).and_then(|mut kubectl| {
            kubectl.args(["apply", "-k", "deploy/crds"]);
            Ok(kubectl.stdout(Stdio::null()).status()?)
        });
    }
}

// === impl Forwarded ===

impl Forwarded {
    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Deletes the overlay's objects; returns whether all of them are gone.
fn remove(stage: &Stage) -> bool {
    let limit = format!("--timeout={}s", LIMIT.as_secs());
    let deleted = command(stage.bed()).and_then(|mut kubectl| {
        kubectl.args(["delete", "-k", OVERLAY, "--ignore-not-found", &limit]);
        Ok(kubectl.stdout(Stdio::null()).status()?)
    });
    deleted.is_ok_and(|status| status.success())
}
