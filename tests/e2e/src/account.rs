//! The runner's service account with the permissions of an existing installation.

use std::path::{Path, PathBuf};

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, Resource, api::PostParams, config::Kubeconfig};
use serde_json::{Value, json};

use crate::Stage;

const ACCOUNT: &str = "function-runner";
const ROLE: &str = include_str!("../fixtures/installation-role.yaml");
const OWN_ROLE: &str = include_str!("../fixtures/installation-own-role.yaml");
/// Namespace of a runner outside a cluster.
const OWN_NAMESPACE: &str = "porch-system";

/// A service account of the stage with exactly the permissions that an installation grants.
pub struct Account {
    kubeconfig: PathBuf,
    _scratch: tempfile::TempDir,
}

// === impl Account ===

impl Account {
    /// Creates the account, its role and a kubeconfig.
    pub async fn create(stage: &Stage) -> Self {
        let create = PostParams::default();
        let account = json!({"metadata": {"name": ACCOUNT}});
        let account: ServiceAccount = serde_json::from_value(account).expect("an account");
        let accounts = stage.api::<ServiceAccount>();
        let made = accounts.create(&create, &account).await;
        made.expect("the API server accepts the account");

        let role: Role = serde_saphyr::from_str(ROLE).expect("a role");
        let made = stage.api().create(&create, &role).await;
        made.expect("the API server accepts the role");
        let made = stage.api().create(&create, &binding(stage, ACCOUNT)).await;
        made.expect("the API server accepts the binding");

        let request = json!({"metadata": {}, "spec": {"audiences": []}});
        let request: TokenRequest = serde_json::from_value(request).expect("a request");
        let issued = accounts.create_token_request(ACCOUNT, &create, &request);
        let issued = issued.await.expect("the API server issues a token");
        let token = issued.status.expect("a token").token;

        let scratch = tempfile::tempdir().expect("a directory");
        let kubeconfig = scratch.path().join("kubeconfig");
        write_kubeconfig(stage, &kubeconfig, &token);
        Self {
            kubeconfig,
            _scratch: scratch,
        }
    }

    /// Returns the path of a kubeconfig for this account.
    #[must_use]
    pub fn kubeconfig(&self) -> &str {
        self.kubeconfig.to_str().expect("a path in UTF-8")
    }

    /// Allows the account to read this ConfigMap of the runner's own namespace, and no other.
    pub async fn allow_to_read(&self, stage: &Stage, name: &str) {
        let mut role: Role = serde_saphyr::from_str(OWN_ROLE).expect("a role");
        role.metadata.name = Some(name.to_owned());
        for rule in role.rules.iter_mut().flatten() {
            rule.resource_names = Some(vec![name.to_owned()]);
        }
        put_into_own_namespace(stage, role).await;
        put_into_own_namespace(stage, binding(stage, name)).await;
    }
}

/// Creates a ConfigMap in the namespace of a runner outside a cluster, and returns its name.
///
/// It is named after the stage and deleted with it.
pub async fn config_map_of_runner(stage: &Stage, data: &Value) -> String {
    let name = stage.namespace().to_owned();
    let map = json!({"metadata": {"name": name}, "data": data});
    let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
    put_into_own_namespace(stage, map).await;
    name
}

/// Returns the API for ConfigMaps in the namespace of a runner outside a cluster.
#[must_use]
pub fn config_maps_of_runner(stage: &Stage) -> Api<ConfigMap> {
    Api::namespaced(stage.client(), OWN_NAMESPACE)
}

async fn put_into_own_namespace<K>(stage: &Stage, mut object: K)
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(stage.client());
    let own = json!({"metadata": {"name": OWN_NAMESPACE}});
    let own: Namespace = serde_json::from_value(own).expect("a namespace");
    match namespaces.create(&create, &own).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => panic!("cannot create the namespace: {error}"),
    }
    let namespace = namespaces.get(stage.namespace()).await;
    let owner = namespace.expect("the namespace exists").owner_ref(&());
    object.meta_mut().owner_references = owner.map(|owner| vec![owner]);
    let api: Api<K> = Api::namespaced(stage.client(), OWN_NAMESPACE);
    let made = api.create(&create, &object).await;
    made.expect("the API server accepts the object");
}

fn binding(stage: &Stage, role: &str) -> RoleBinding {
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [
            {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": stage.namespace()},
        ],
    });
    serde_json::from_value(binding).expect("a binding")
}

fn write_kubeconfig(stage: &Stage, file: &Path, token: &str) {
    let mut config = Kubeconfig::read_from(stage.bed().kubeconfig()).expect("a kubeconfig");
    for user in &mut config.auth_infos {
        let with_token = serde_json::from_value(json!({"token": token}));
        user.auth_info = Some(with_token.expect("credentials"));
    }
    let text = serde_json::to_string(&config).expect("a kubeconfig can be written");
    std::fs::write(file, text).expect("the file can be written");
}
