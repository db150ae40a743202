//! A namespace of the test's own on the test bed, for as long as the test runs.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use kube::{
    Api, Client, Config, Resource,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::NamespaceResourceScope,
};
use serde_json::json;
use testbed::{Testbed, Turn};

use crate::{report, wait::eventually};

/// What a test gets.
#[derive(Clone)]
pub struct Stage {
    bed: Arc<Testbed>,
    client: Client,
    namespace: String,
    _turn: Arc<Turn>,
}

/// Runs a test beside others.
pub fn on_cluster(test: impl AsyncFnOnce(Stage)) {
    play(test, Testbed::shared_turn);
}

/// Runs a test alone, because it breaks what others rely on.
pub fn on_disturbed_cluster(test: impl AsyncFnOnce(Stage)) {
    play(test, Testbed::sole_turn);
}

/// Returns the test bed that is up.
///
/// # Panics
///
/// If none is up, with the command that starts one.
pub fn running_testbed() -> Testbed {
    testbed_or_panic(Testbed::running())
}

fn testbed_or_panic<T>(result: anyhow::Result<T>) -> T {
    let remedy = "start a new test bed: make testbed-down testbed-up";
    result.unwrap_or_else(|error| panic!("{}", runner_devtools::report(&error, remedy)))
}

fn play(test: impl AsyncFnOnce(Stage), turn: impl FnOnce(&Testbed) -> anyhow::Result<Turn>) {
    let bed = running_testbed();
    let turn = turn(&bed).expect("the lock of the tests can be taken");
    testbed_or_panic(bed.require_complete());
    // An earlier test of this process has done it, perhaps.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let stage = Stage::set(bed, turn).await;
        // A panic ends here, so that the stage can be cleared; nothing of the test is used after.
        let outcome = AssertUnwindSafe(test(stage.clone())).catch_unwind().await;
        if outcome.is_err() {
            report::print(&stage).await;
        }
        stage.clear().await;
        if let Err(failure) = outcome {
            panic::resume_unwind(failure);
        }
    });
}

// === impl Stage ===

impl Stage {
    async fn set(bed: Testbed, turn: Turn) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("e2e-{}-{number}", std::process::id());
        let client = client(&bed).await;
        let fresh = json!({"metadata": {"name": namespace, "labels": {"krm-e2e": "true"}}});
        let fresh: Namespace = serde_json::from_value(fresh).expect("a namespace");
        Api::all(client.clone())
            .create(&PostParams::default(), &fresh)
            .await
            .expect("the cluster takes a namespace");
        let stage = Self {
            bed: Arc::new(bed),
            client,
            namespace,
            _turn: Arc::new(turn),
        };
        // Until the controller has made it, no pod is admitted.
        let accounts = stage.api::<ServiceAccount>();
        eventually("the default service account", async || {
            accounts
                .get_opt("default")
                .await
                .is_ok_and(|account| account.is_some())
        })
        .await;
        stage
    }

    /// The test bed, for its registries and faults.
    #[must_use]
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// The way to the API server, as administrator.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The test's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of one kind in the test's own namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// An image of the open registry by its tag, as `functions/count` or `bad/sleep`.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}:v1", self.bed.open_registry())
    }

    /// The image with the wrapper, pinned: the node may have an earlier one of that tag.
    #[must_use]
    pub fn wrapper_image(&self) -> String {
        testbed_or_panic(self.bed.pinned_image("wrapper-server"))
    }

    /// Makes a pull secret with these credentials for the private registry.
    pub async fn pull_secret(&self, name: &str, user: &str, password: &str) {
        let host = self.bed.private_registry().host;
        let logins = json!({"auths": {host: {"username": user, "password": password}}});
        let secret = json!({
            "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": logins.to_string()},
        });
        let secret: Secret = serde_json::from_value(secret).expect("a secret");
        let made = self.api().create(&PostParams::default(), &secret).await;
        made.expect("the cluster takes the secret");
    }

    async fn clear(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let at_once = DeleteParams::default().grace_period(0);
        if let Err(error) = namespaces.delete(&self.namespace, &at_once).await {
            eprintln!("cannot delete namespace {}: {error}", self.namespace);
        }
    }
}

async fn client(bed: &Testbed) -> Client {
    let kubeconfig = Kubeconfig::read_from(bed.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a usable kubeconfig");
    Client::try_from(config).expect("a client")
}
