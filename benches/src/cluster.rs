//! The test bed's Kubernetes: an own namespace, and a runner whose functions run in its pods.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tempfile::TempDir;
use testbed::{ClusterLock, Testbed, addresses};

use crate::{functions::Function, relay::Relay, runner::Runner};

const PAUSE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);

/// Log message of a runner that has the complete list of pods.
const IN_STEP: &str = "in step with the cluster";

/// The way in which the wrapper gets into a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Injection {
    InitContainer,
    ContainerBeside,
    ImageVolume,
}

/// A namespace on the test bed, deleted by [`Cluster::leave`].
pub(crate) struct Cluster {
    bed: Testbed,
    client: Client,
    relay: Relay,
    scratch: TempDir,
    namespace: String,
    _lock: ClusterLock,
}

// === impl Cluster ===

impl Cluster {
    /// Takes exclusive use of the running test bed and creates a namespace.
    ///
    /// Exclusive, because tests on the same machine and measurements disturb each other.
    pub(crate) async fn join() -> Result<Self> {
        let bed = Testbed::running()?;
        let lock = bed.lock_exclusive()?;
        bed.require_complete()?;
        let mut kubeconfig = Kubeconfig::read_from(bed.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        let client = Client::try_from(config)?;

        let server = kubeconfig
            .clusters
            .first_mut()
            .and_then(|named| named.cluster.as_mut())
            .context("the kubeconfig names no cluster")?;
        let url = server.server.take().unwrap_or_default();
        let host = url.trim_start_matches("https://").trim_end_matches('/');
        let address: SocketAddr = host.parse().with_context(|| format!("no address: {url}"))?;
        let relay = Relay::to(address)?;
        server.server = Some(format!("https://{}", relay.address()));
        server.tls_server_name = Some(address.ip().to_string());
        let scratch = tempfile::tempdir()?;
        let counted = serde_json::to_vec(&kubeconfig)?;
        std::fs::write(scratch.path().join("kubeconfig"), counted)?;

        let cluster = Self {
            bed,
            client,
            relay,
            scratch,
            namespace: format!("bench-{}", std::process::id()),
            _lock: lock,
        };
        cluster.make_namespace().await?;
        Ok(cluster)
    }

    async fn make_namespace(&self) -> Result<()> {
        let fresh: Namespace = serde_json::from_value(json!({
            "metadata": {"name": self.namespace},
        }))?;
        Api::all(self.client.clone())
            .create(&PostParams::default(), &fresh)
            .await?;
        // No pod is admitted until the controller has created the default service account.
        let accounts: Api<ServiceAccount> = self.api();
        let made = async {
            while !matches!(accounts.get_opt("default").await, Ok(Some(_))) {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(LIMIT, made)
            .await
            .context("the namespace gets no service account")
    }

    /// Deletes the namespace and everything in it.
    pub(crate) async fn leave(self) -> Result<()> {
        Api::<Namespace>::all(self.client.clone())
            .delete(&self.namespace, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Starts a runner that creates pods in this namespace.
    ///
    /// Without `injection` the runner chooses the injection.
    pub(crate) fn runner(&self, injection: Option<Injection>) -> Result<Runner> {
        let kubeconfig: PathBuf = self.scratch.path().join("kubeconfig");
        let (wrapper, host) = (self.wrapper_image()?, self.host()?);
        let injection = injection.map(|injection| match injection {
            Injection::InitContainer => "--wrapper-injection=init",
            Injection::ContainerBeside => "--wrapper-injection=container",
            Injection::ImageVolume => "--wrapper-injection=image",
        });
        Runner::run(IN_STEP, |command| {
            command
                .arg("--disable-runtimes=exec")
                .arg(format!("--pod-namespace={}", self.namespace))
                .arg("--announce-port=0")
                .arg(format!("--announce-address={host}"))
                .args(injection)
                .env("KUBECONFIG", kubeconfig)
                .env("WRAPPER_SERVER_IMAGE", wrapper)
        })
    }

    /// Returns the image of a measured function.
    pub(crate) fn image(&self, function: Function) -> String {
        let name = match function {
            Function::Go => "set-namespace",
            Function::Python => "annotate",
            Function::Cat => "cat",
        };
        format!("{}/functions/{name}:v1", self.bed.open_registry())
    }

    pub(crate) fn wrapper_image(&self) -> Result<String> {
        self.bed.pinned_image("wrapper-server")
    }

    /// Returns the address at which pods reach this machine.
    pub(crate) fn host(&self) -> Result<IpAddr> {
        Ok(addresses::NODE.parse()?)
    }

    /// Returns the number of TLS records that runners have sent to the API server: requests and
    /// others.
    pub(crate) fn requests(&self) -> u64 {
        self.relay.sent()
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Deletes every pod of the namespace and waits until all are gone.
    pub(crate) async fn without_pods(&self) -> Result<()> {
        let pods: Api<Pod> = self.api();
        let at_once = DeleteParams::default().grace_period(0);
        let gone = async {
            loop {
                pods.delete_collection(&at_once, &ListParams::default())
                    .await?;
                if pods.list(&ListParams::default()).await?.items.is_empty() {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(LIMIT, gone)
            .await
            .context("pods do not go")?
    }
}
