//! The open registry under one name that nodes and pods both resolve.
//!
//! Nodes reach the registry of the test bed on loopback, pods cannot. A runner whose flags a test
//! must not change therefore needs a name that works for both. The runner uses plain HTTP for
//! hosts below `localhost` without a flag.

use std::process::Stdio;

use serde_json::json;
use testbed::faults::Fault;

use super::{
    NODE,
    kubectl::{command, kubectl},
    reachable_registry,
};
use crate::{LIMIT, Stage};

/// The Service `registry` in the namespace `localhost`.
const HOST: &str = "registry.localhost:5000";

/// The name in use, until this value is dropped.
pub struct NamedRegistry {
    stage: Stage,
    _name: Fault<'static>,
}

// === impl NamedRegistry ===

impl NamedRegistry {
    /// Makes the name known to nodes and pods.
    pub async fn open(stage: &Stage) -> Self {
        assert!(
            remove(stage),
            "the namespace of the registry can be deleted"
        );
        let name = stage.bed().with_registry_named(HOST);
        let this = Self {
            stage: stage.clone(),
            _name: name.unwrap_or_else(|error| panic!("{error:#}")),
        };
        this.serve_pods().await;
        this
    }

    /// Returns the reference of a function's image under the shared name.
    #[must_use]
    pub fn function(&self, name: &str) -> String {
        format!("{HOST}/functions/{name}:v1")
    }

    async fn serve_pods(&self) {
        let (service, rest) = HOST.split_once('.').expect("a service");
        let (namespace, port) = rest.split_once(':').expect("a port");
        let port: u16 = port.parse().expect("a number");
        let registry = reachable_registry(self.stage.bed()).await;
        let metadata = json!({
            "name": service, "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"ports": [{"port": port, "targetPort": registry.port()}]},
            },
            {
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": metadata, "addressType": "IPv4",
                "endpoints": [{"addresses": [NODE]}], "ports": [{"port": registry.port()}],
            },
        ]});
        let list = list.to_string();
        kubectl(self.stage.bed(), &["create", "-f", "-"], Some(&list)).await;
    }
}

impl Drop for NamedRegistry {
    fn drop(&mut self) {
        if !remove(&self.stage) {
            eprintln!("cannot delete the namespace of {HOST}");
        }
    }
}

fn remove(stage: &Stage) -> bool {
    let limit = format!("--timeout={}s", LIMIT.as_secs());
    let deleted = command(stage.bed()).and_then(|mut kubectl| {
        kubectl.args([
            "delete",
            "namespace",
            "localhost",
            "--ignore-not-found",
            &limit,
        ]);
        Ok(kubectl.stdout(Stdio::null()).status()?)
    });
    deleted.is_ok_and(|status| status.success())
}
