//! The custom resource definitions of an installation, and FunctionConfig objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use runner_cluster::objects::{FunctionConfig, custom_resource_definitions};
use serde_json::{Value, json};

use crate::{Stage, eventually};

/// Installs the custom resource definitions; they stay, because they do not affect other tests.
pub async fn install_definitions(stage: &Stage) {
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.client());
    for definition in custom_resource_definitions() {
        let name = definition.name_any();
        let apply = PatchParams::apply("e2e").force();
        let patch = Patch::Apply(&definition);
        let applied = definitions.patch(&name, &apply, &patch).await;
        applied.expect("the API server accepts the definition");
        eventually("an established definition", async || {
            let found = definitions.get(&name).await.expect("the definition exists");
            let conditions = found.status.and_then(|status| status.conditions);
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|condition| condition.type_ == "Established" && condition.status == "True")
            })
        })
        .await;
    }
}

/// Configures the pods of version `v1` of a function of the open registry, such as `count`.
///
/// Unless `--warm-up-pod-cache=false` is given, a runner keeps such a function warm.
pub async fn configure_pods(stage: &Stage, name: &str, mut pods: Value) {
    pods["tags"] = json!(["v1"]);
    let config = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": {"name": name},
        "spec": {
            "image": name,
            "prefixes": [format!("{}/functions", stage.bed().open_registry())],
            "podExecutor": pods,
        },
    });
    let apply = PatchParams::apply("e2e").force();
    let configs = stage.api::<FunctionConfig>();
    let put = configs.patch(name, &apply, &Patch::Apply(&config)).await;
    put.expect("the API server accepts the object");
}
