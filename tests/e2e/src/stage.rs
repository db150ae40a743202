//! A namespace of the test bed for the duration of one test.

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
use testbed::{ClusterLock, Testbed};

use crate::{eventually, report};

/// A test's own namespace and its access to the test bed.
#[derive(Clone)]
pub struct Stage {
    bed: Arc<Testbed>,
    client: Client,
    namespace: String,
    _lock: Arc<ClusterLock>,
}

/// Runs a test in parallel with others.
pub fn on_cluster(test: impl AsyncFnOnce(Stage)) {
    run_test(test, Testbed::lock_shared);
}

/// Runs a test alone, because it disturbs components that other tests use.
pub fn on_disturbed_cluster(test: impl AsyncFnOnce(Stage)) {
    run_test(test, Testbed::lock_exclusive);
}

/// Returns the running test bed.
///
/// # Panics
///
/// If no test bed runs; the message contains the command that starts one.
pub fn running_testbed() -> Testbed {
    testbed_or_panic(Testbed::running())
}

fn testbed_or_panic<T>(result: anyhow::Result<T>) -> T {
    let remedy = "start a new test bed: make testbed-down testbed-up";
    result.unwrap_or_else(|error| panic!("{}", runner_devtools::report(&error, remedy)))
}

fn run_test(
    test: impl AsyncFnOnce(Stage),
    take_lock: impl FnOnce(&Testbed) -> anyhow::Result<ClusterLock>,
) {
    let bed = running_testbed();
    let lock = take_lock(&bed).expect("the lock of the tests can be taken");
    testbed_or_panic(bed.require_complete());
    // Fails if an earlier test of this process has installed it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let stage = Stage::create(bed, lock).await;
        // A panic is caught here so that the stage is deleted; no value of the test is used
        // afterwards.
        let outcome = AssertUnwindSafe(test(stage.clone())).catch_unwind().await;
        if outcome.is_err() {
            report::print(&stage).await;
        }
        stage.delete().await;
        if let Err(failure) = outcome {
            panic::resume_unwind(failure);
        }
    });
}

// === impl Stage ===

impl Stage {
    async fn create(bed: Testbed, lock: ClusterLock) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("e2e-{}-{number}", std::process::id());
        let client = client(&bed).await;
        let fresh = json!({"metadata": {"name": namespace, "labels": {"krm-e2e": "true"}}});
        let fresh: Namespace = serde_json::from_value(fresh).expect("a namespace");
        Api::all(client.clone())
            .create(&PostParams::default(), &fresh)
            .await
            .expect("the API server accepts a namespace");
        let stage = Self {
            bed: Arc::new(bed),
            client,
            namespace,
            _lock: Arc::new(lock),
        };
        // No pod is admitted until the controller has created the default service account.
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

    /// Returns the test bed, for its registries and faults.
    #[must_use]
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// Returns a client of the API server with the administrator's permissions.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the test's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the API for objects of one kind in the test's own namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns an image of the open registry with its tag, such as `functions/count` or
    /// `bad/sleep`.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}:v1", self.bed.open_registry())
    }

    /// Returns the wrapper's image with its digest, because the node may have an earlier one of
    /// that tag.
    #[must_use]
    pub fn wrapper_image(&self) -> String {
        testbed_or_panic(self.bed.pinned_image("wrapper-server"))
    }

    /// Creates a pull secret with these credentials for the private registry.
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
        made.expect("the API server accepts the secret");
    }

    async fn delete(&self) {
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
