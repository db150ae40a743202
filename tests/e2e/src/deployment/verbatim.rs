//! The overlay for developers on an empty cluster, by the commands the manual gives.
//!
//! Nothing of it is changed, so its names are taken while it is there: a test needs the cluster
//! alone. What it expects around it the test bed brings: images under the names it has for them,
//! and functions in a [`NamedRegistry`].

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
    Stage,
    wait::{LIMIT, eventually},
};

const OVERLAY: &str = "deploy/overlays/dev";
const IMAGES: &str = "localhost:5000";

/// The overlay as long as it is applied; nothing is left of it afterwards.
pub struct Verbatim {
    stage: Stage,
    registry: NamedRegistry,
    _images: Fault<'static>,
}

/// A port of this machine that leads to the runner's service.
pub struct Forwarded {
    address: String,
    _kubectl: Child,
    /// It says more with every connection, and must not find the pipe closed.
    _lines: BufReader<ChildStdout>,
}

// === impl Verbatim ===

impl Verbatim {
    /// The runner's namespace.
    pub const NAMESPACE: &str = "porch-system";
    /// That of functions.
    pub const FUNCTION_NAMESPACE: &str = "porch-fn-system";

    /// Applies it where there is nothing of it, and waits until it is rolled out.
    pub async fn install(stage: &Stage) -> Self {
        assert!(remove(stage), "the cluster can be emptied");
        let images = stage.bed().with_registry_named(IMAGES);
        let this = Self {
            stage: stage.clone(),
            registry: NamedRegistry::open(stage).await,
            _images: images.unwrap_or_else(|error| panic!("{error:#}")),
        };
        tokio::join!(this.apply(), this.forget_older_wrappers());
        this
    }

    /// A function's image by a name that both nodes and pods understand.
    #[must_use]
    pub fn function(&self, name: &str) -> String {
        self.registry.function(name)
    }

    /// kubectl in the runner's namespace; it must succeed.
    pub async fn own(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-n", Self::NAMESPACE];
        all.extend(arguments);
        self.kubectl(&all).await
    }

    /// Makes the runner reachable from this machine, on a port that is free.
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
        let said = tokio::time::timeout(LIMIT, lines.read_line(&mut line)).await;
        said.expect("a port in time").expect("kubectl can be read");
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

    /// What its one replica counts, as Prometheus reads it.
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
            assert!(line.ends_with(" created"), "it was there before: {line}");
        }
        let limit = format!("--timeout={}s", LIMIT.as_secs());
        let status = ["rollout", "status", "deployment/function-runner", &limit];
        self.own(&status).await;
    }

    /// The node of an empty cluster has no image. This one keeps what it has pulled under a tag,
    /// and function pods would get the wrapper of an earlier test.
    async fn forget_older_wrappers(&self) {
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
        made.expect("the cluster takes the pod");
        eventually("the newest wrapper on the node", async || {
            let pull = pods.get("pull").await.expect("the pod is there");
            let phase = pull.status.and_then(|status| status.phase);
            matches!(phase.as_deref(), Some("Succeeded" | "Failed"))
        })
        .await;
    }
}

impl Drop for Verbatim {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let bed = self.stage.bed();
            report(bed, Self::NAMESPACE, &format!("app={NAME}"));
            report(bed, Self::FUNCTION_NAMESPACE, "fn.kpt.dev/image");
        }
        if !remove(&self.stage) {
            eprintln!("cannot remove what {OVERLAY} has made");
        }
        // Other tests find them as those before them did.
        let _ = command(self.stage.bed()).and_then(|mut kubectl| {
            kubectl.args(["apply", "-k", "deploy/crds"]);
            Ok(kubectl.stdout(Stdio::null()).status()?)
        });
    }
}

// === impl Forwarded ===

impl Forwarded {
    /// Host and port.
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
