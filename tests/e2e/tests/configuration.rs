//! `FunctionConfig` objects on a real API server: validation, their effect on the table, and their
//! status, with only the permissions that an installation grants.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{LIMIT, Stage, eventually, install_definitions, on_cluster, on_disturbed_cluster};
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use runner_cluster::{
    FunctionConfigWatch, WatchState,
    objects::{FunctionConfig, ServiceTemplate},
    watch_function_configs,
};
use runner_config::{Binaries, Configuration, FileOptions, Table, Wanted};
use runner_core::ImageReference;
use serde::Deserialize;
use serde_json::{Value, json};

const PREFIX: &str = "ghcr.io/default";
/// Time limit until evaluations see an edit.
const PROMPT: Duration = Duration::from_secs(1);

/// A runner's configuration that follows the stage's namespace, without the rest of a runner.
struct Following {
    configuration: Configuration,
    watch: FunctionConfigWatch,
    _directory: tempfile::TempDir,
}

// === impl Following ===

impl Following {
    async fn start(client: Client, namespace: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            let path = directory.path().join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let configuration = Configuration::load(FileOptions {
            functions_dir: directory.path().to_owned(),
            config: PathBuf::from("/nonexistent"),
            config_wanted: Wanted::Optional,
            pod_cache_config: PathBuf::from("/nonexistent"),
            pod_cache_wanted: Wanted::Optional,
            default_prefix: PREFIX.to_owned(),
            binaries: Binaries::Check,
        })
        .unwrap();
        let watch = watch_function_configs(&configuration, client, namespace);
        Self {
            configuration,
            watch,
            _directory: directory,
        }
    }

    async fn reach(&self, wanted: impl Fn(&WatchState) -> bool) {
        let mut state = self.watch.state();
        tokio::time::timeout(LIMIT, state.wait_for(wanted))
            .await
            .unwrap()
            .unwrap();
    }

    /// Waits for a table that runs the function by this binary, and returns the waiting time.
    async fn runs(&self, binary: Option<&str>) -> Duration {
        let started = Instant::now();
        let mut tables = self.configuration.watch();
        let wait = async {
            while binary_of(&self.configuration.table()).as_deref() != binary {
                tables.changed().await.unwrap();
            }
        };
        tokio::time::timeout(LIMIT, wait).await.unwrap();
        started.elapsed()
    }
}

fn binary_of(table: &Table) -> Option<String> {
    let image = ImageReference::qualified("fn:v1", PREFIX).unwrap();
    let found = table.executable(&image, None)?;
    Some(found.executable.path.file_name()?.to_str()?.to_owned())
}

/// Returns a client of a service account with these rules, or without any.
async fn restricted(stage: &Stage, rules: Option<Value>) -> Client {
    let create = PostParams::default();
    let account = json!({"metadata": {"name": "runner"}});
    let accounts: Api<ServiceAccount> = stage.api();
    accounts
        .create(&create, &serde_json::from_value(account).unwrap())
        .await
        .unwrap();
    if let Some(rules) = rules {
        let role: Role = serde_json::from_value(json!({
            "metadata": {"name": "runner"}, "rules": rules,
        }))
        .unwrap();
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": {"name": "runner"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "runner"},
            "subjects": [{"kind": "ServiceAccount", "name": "runner", "namespace": stage.namespace()}],
        }))
        .unwrap();
        stage.api().create(&create, &role).await.unwrap();
        stage.api().create(&create, &binding).await.unwrap();
    }
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}})).unwrap();
    let issued = accounts
        .create_token_request("runner", &create, &request)
        .await
        .unwrap();
    let kubeconfig = Kubeconfig::read_from(stage.bed().kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.auth_info =
        serde_json::from_value(json!({"token": issued.status.unwrap().token})).unwrap();
    Client::try_from(config).unwrap()
}

/// Returns the rules that an installation grants for these objects.
fn granted() -> Value {
    json!([
        {"apiGroups": ["config.porch.kpt.dev"], "resources": ["functionconfigs"],
         "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["config.porch.kpt.dev"], "resources": ["functionconfigs/status"],
         "verbs": ["get", "update", "patch"]},
    ])
}

async fn put(stage: &Stage, name: &str, binary: &str) -> FunctionConfig {
    let object = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": {"name": name},
        "spec": {"image": "fn", "binaryExecutor": {"path": binary, "tags": ["v1"]}},
    });
    let api: Api<FunctionConfig> = stage.api();
    api.patch(
        name,
        &PatchParams::apply("e2e").force(),
        &Patch::Apply(&object),
    )
    .await
    .unwrap()
}

/// Waits until the object's status is that of its current generation and has this error or none.
async fn told(stage: &Stage, name: &str, says: Option<&str>) {
    let api: Api<FunctionConfig> = stage.api();
    eventually("the object's status", async || {
        let object = api.get(name).await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        let current = status.function_runner_observed_generation == object.metadata.generation;
        current
            && match says {
                Some(says) => status.error.is_some_and(|error| error.contains(says)),
                None => status.error.is_none(),
            }
    })
    .await;
}

#[test]
fn follows_objects_with_the_permissions_of_an_installation() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let client = restricted(&stage, Some(granted())).await;
        let following = Following::start(client, stage.namespace()).await;
        following.reach(|state| *state == WatchState::Synced).await;

        put(&stage, "older", "one").await;
        following.runs(Some("one")).await;
        told(&stage, "older", None).await;

        put(&stage, "older", "two").await;
        let took = following.runs(Some("two")).await;
        assert!(took < PROMPT, "an edit took {took:?}");
        told(&stage, "older", None).await;

        put(&stage, "older", "nowhere").await;
        told(&stage, "older", Some("nowhere cannot be used")).await;
        put(&stage, "older", "two").await;
        told(&stage, "older", None).await;

        // Creation times are whole seconds; within a second the names decide, so "younger" is
        // second.
        put(&stage, "younger", "one").await;
        told(
            &stage,
            "younger",
            Some("already configured by the older FunctionConfig"),
        )
        .await;
        assert_eq!(
            binary_of(&following.configuration.table()).as_deref(),
            Some("two")
        );

        let api: Api<FunctionConfig> = stage.api();
        api.delete("older", &DeleteParams::default()).await.unwrap();
        following.runs(Some("one")).await;
        told(&stage, "younger", None).await;
    });
}

#[test]
fn an_object_with_the_finalizer_of_earlier_runners_can_be_deleted() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let client = restricted(&stage, Some(granted())).await;
        let following = Following::start(client, stage.namespace()).await;
        put(&stage, "held", "one").await;
        let api: Api<FunctionConfig> = stage.api();
        let finalizer = "config.porch.kpt.dev/functionconfig-function-runner";
        let hold = Patch::Merge(json!({"metadata": {"finalizers": [finalizer]}}));
        api.patch("held", &PatchParams::default(), &hold)
            .await
            .unwrap();
        following.runs(Some("one")).await;

        api.delete("held", &DeleteParams::default()).await.unwrap();
        following.runs(None).await;
        eventually("the object is gone", async || {
            api.get_opt("held").await.unwrap().is_none()
        })
        .await;
    });
}

#[test]
fn reports_missing_permissions_and_follows_once_they_are_granted() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let client = restricted(&stage, None).await;
        let following = Following::start(client, stage.namespace()).await;
        following
            .reach(|state| matches!(state, WatchState::Unavailable(why) if why.contains("grant get, list")))
            .await;
        put(&stage, "o", "one").await;
        assert_eq!(binary_of(&following.configuration.table()), None);

        let create = PostParams::default();
        let role = json!({"metadata": {"name": "late"}, "rules": granted()});
        let role: Role = serde_json::from_value(role).unwrap();
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": {"name": "late"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "late"},
            "subjects": [{"kind": "ServiceAccount", "name": "runner", "namespace": stage.namespace()}],
        }))
        .unwrap();
        stage.api().create(&create, &role).await.unwrap();
        stage.api().create(&create, &binding).await.unwrap();
        following.reach(|state| *state == WatchState::Synced).await;
        following.runs(Some("one")).await;
    });
}

#[test]
fn finds_the_function_at_every_moment_during_edits() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let following = Following::start(stage.client(), stage.namespace()).await;
        put(&stage, "o", "one").await;
        following.runs(Some("one")).await;

        let done = Arc::new(AtomicBool::new(false));
        let (configuration, until) = (following.configuration.clone(), done.clone());
        let load = std::thread::spawn(move || {
            let mut lookups = 0_u64;
            while !until.load(Ordering::Relaxed) {
                assert!(binary_of(&configuration.table()).is_some());
                lookups += 1;
            }
            lookups
        });
        for edit in 0..20 {
            let binary = if edit % 2 == 0 { "two" } else { "one" };
            put(&stage, "o", binary).await;
            let took = following.runs(Some(binary)).await;
            assert!(took < PROMPT, "edit {edit} took {took:?}");
        }
        done.store(true, Ordering::Relaxed);
        let lookups = load.join().expect("every lookup found the function");
        assert!(lookups > 1000, "{lookups} lookups are no load");
    });
}

#[test]
fn sees_changes_after_an_outage_of_the_api_server() {
    on_disturbed_cluster(async |stage| {
        install_definitions(&stage).await;
        let following = Following::start(stage.client(), stage.namespace()).await;
        put(&stage, "o", "one").await;
        following.runs(Some("one")).await;
        told(&stage, "o", None).await;

        let fault = stage.bed().without_api_server().unwrap();
        stage.client().apiserver_version().await.unwrap_err();
        assert_eq!(
            binary_of(&following.configuration.table()).as_deref(),
            Some("one")
        );
        fault.heal().unwrap();

        put(&stage, "o", "two").await;
        following.runs(Some("two")).await;
        told(&stage, "o", None).await;
    });
}

#[derive(Deserialize)]
struct Case {
    title: String,
    kind: String,
    #[serde(default)]
    refused: Option<String>,
    object: Value,
}

#[test]
fn the_real_api_server_validates_objects_like_the_schema_tests() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let cases: Vec<Case> = serde_saphyr::from_str(include_str!(
            "../../../crates/cluster/tests/schema/cases.yaml"
        ))
        .unwrap();
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let mut wrong = Vec::new();
        for Case {
            title,
            kind,
            refused,
            object,
        } in cases
        {
            let resource = match kind.as_str() {
                "FunctionConfig" => ApiResource::erase::<FunctionConfig>(&()),
                _ => ApiResource::erase::<ServiceTemplate>(&()),
            };
            let api: Api<DynamicObject> =
                Api::namespaced_with(stage.client(), stage.namespace(), &resource);
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let taken = api.create(&dry, &object).await;
            if taken.is_err() != refused.is_some() {
                wrong.push(format!("{title}: expected {refused:?}, got {taken:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
