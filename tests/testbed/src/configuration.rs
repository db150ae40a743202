//! Writes the configuration files of the components.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use crate::{
    addresses::{API_PORT, BRIDGE, DNS, NODE, PODS, PRIVATE_REGISTRY_PORT},
    certificates, cgroups,
    layout::{self, Layout},
    registries,
    settings::Settings,
};

/// Writes all files; the same settings give the same files.
pub fn write(layout: &Layout, settings: &Settings) -> Result<()> {
    for directory in [
        "certs",
        "cni",
        "config",
        "logs",
        "logs/pods",
        "pids",
        "registries",
    ] {
        layout::make_dir(&layout.in_run(directory))?;
    }
    certificates::ensure(&layout.in_run("certs"))?;

    let run = layout.run();
    let config = |name: &str| layout.in_run("config").join(name);
    let token = &settings.admin_token;
    layout::write(
        &config("tokens.csv"),
        format!("{token},admin,admin,system:masters\n"),
    )?;
    layout::write(&layout.in_run("kubeconfig"), kubeconfig(&run, settings)?)?;
    layout::write(&config("containerd.toml"), containerd(&run, settings))?;
    layout::write(
        &layout.in_run("cni/10-testbed.conflist"),
        cni_network(&run)?,
    )?;
    layout::write(&config("kubelet.json"), kubelet(&run)?)?;
    layout::write(&config("Corefile"), corefile(&run))?;
    registries::write_configuration(layout, settings)
}

/// Returns the kubeconfig of the cluster's administrator.
fn kubeconfig(run: &Path, settings: &Settings) -> Result<String> {
    // JSON is also YAML, and a serialiser does the quoting.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {
            "server": format!("https://{NODE}:{API_PORT}"),
            "certificate-authority": run.join("certs/ca.crt"),
        }}],
        "users": [{"name": "admin", "user": {"token": settings.admin_token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "admin"}}],
        "current-context": "testbed",
    });
    Ok(serde_json::to_string_pretty(&config)?)
}

/// Returns containerd's configuration.
///
/// - `restrict_oom_score_adj`: without `CAP_SYS_RESOURCE`, as in many virtual machines and
///   containers, no sandbox would start otherwise.
/// - `netns_mounts_under_state_dir`, `Root`, `opt`, no NRI: no files outside the run directory.
fn containerd(run: &Path, settings: &Settings) -> String {
    let run = run.display();
    let port = settings.registry_port;
    format!(
        r#"version = 3
root = "{run}/containerd"
state = "{run}/containerd-state"
imports = []

[grpc]
address = "{run}/containerd.sock"

[plugins."io.containerd.cri.v1.images"]
pinned_images = {{ sandbox = "localhost:{port}/pause:1" }}
registry = {{ config_path = "{run}/registries" }}

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
cni = {{ bin_dirs = ["/usr/lib/cni"], conf_dir = "{run}/cni" }}

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options = {{ Root = "{run}/runc" }}

[plugins."io.containerd.internal.v1.opt"]
path = "{run}/opt"

[plugins."io.containerd.nri.v1.nri"]
disable = true
"#
    )
}

/// Returns the CNI configuration of the pod network.
fn cni_network(run: &Path) -> Result<String> {
    let config = json!({
        "cniVersion": "0.4.0",
        "name": crate::residue::NETWORK,
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": run.join("ipam"),
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    Ok(serde_json::to_string_pretty(&config)?)
}

/// Returns the configuration of the kubelet.
fn kubelet(run: &Path) -> Result<String> {
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE,
        // The address and its callers are local to this machine.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::ROOT),
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": format!("unix://{}", run.join("containerd.sock").display()),
        // A developer's disk is often nearly full, which must not affect the tests.
        "evictionHard": {
            "imagefs.available": "1Mi",
            "memory.available": "1Mi",
            "nodefs.available": "1Mi",
        },
        "failSwapOn": false,
        "featureGates": {"ImageVolume": true},
        "healthzPort": 0,
        "maxPods": 250,
        "oomScoreAdj": 0,
        "podLogsDir": run.join("logs/pods"),
        "registryPullQPS": 0,
        "serializeImagePulls": false,
        "volumePluginDir": run.join("kubelet/volume-plugins"),
    });
    Ok(serde_json::to_string_pretty(&config)?)
}

/// Returns the configuration of CoreDNS.
fn corefile(run: &Path) -> String {
    let kubeconfig = run.join("kubeconfig");
    format!(
        ".:53 {{\n  bind {DNS}\n  errors\n  ready {DNS}:8181\n  kubernetes cluster.local {{\n    \
         kubeconfig {}\n  }}\n}}\n",
        kubeconfig.display()
    )
}

/// Returns containerd's configuration for a registry, which it reads for every pull.
pub fn registry_hosts(endpoint: &str, ca: Option<&Path>) -> String {
    let mut hosts = format!("server = \"{endpoint}\"\n\n[host.\"{endpoint}\"]\n");
    hosts.push_str("capabilities = [\"pull\", \"resolve\"]\n");
    if let Some(ca) = ca {
        hosts.push_str(&format!("ca = \"{}\"\n", ca.display()));
    }
    hosts
}

/// Returns the host of the private registry, as image references contain it.
#[must_use]
pub fn private_registry() -> String {
    format!("{NODE}:{PRIVATE_REGISTRY_PORT}")
}
