//! The custom resource `FunctionConfig`; `kubectl explain` shows the doc comments of this file.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, PodSecurityContext, ResourceRequirements};
use kube::CustomResource;
use runner_config::PodOverrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration of one function: the binary and the pods that run its versions.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "config.porch.kpt.dev",
    version = "v1alpha1",
    kind = "FunctionConfig",
    doc = "Configuration of one function: a binary, pods, or code inside porch-server.",
    namespaced,
    status = "FunctionConfigStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Server Applied", "type": "integer", "jsonPath": ".status.apiServerObservedGeneration"}"#,
    printcolumn = r#"{"name": "FnRunner Applied", "type": "integer", "jsonPath": ".status.functionRunnerObservedGeneration"}"#,
    printcolumn = r#"{"name": "Controller Applied", "type": "integer", "jsonPath": ".status.controllerObservedGeneration"}"#,
    printcolumn = r#"{"name": "Error", "type": "string", "jsonPath": ".status.error"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.podExecutor) || has(self.binaryExecutor) || has(self.goExecutor)",
    "message": "at least one of podExecutor, binaryExecutor and goExecutor must be given"
}]))]
pub struct FunctionConfigSpec {
    /// Bare name of the function, such as set-namespace: the last part of its image's path.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Repositories that the function may come from. An empty string, or an empty list, means the
    /// runner's default prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Settings of the function's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_executor: Option<PodExecutor>,
    /// A binary beside the runner that runs some versions of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_executor: Option<BinaryExecutor>,
    /// Versions that porch-server runs itself. The function runner ignores this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_executor: Option<GoExecutor>,
}

/// Settings of a function's pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExecutor {
    /// Semver constraints such as "~0.4" or ">= 0.4.0 < 0.5.0", or exact tags: the versions to
    /// which the other settings apply and for which a pod is kept ready. An empty list matches no
    /// version, "*" matches all. The template overrides apply to every version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Time that an idle pod is kept, such as 30m or 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration", "default" = "30m"))]
    pub time_to_live: Option<String>,
    /// Largest number of pods of one version at the same time; 0 means the runner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel_executions: Option<i64>,
    /// Number of requests that may wait for a pod before another pod is started; 0 means the
    /// runner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_max_queue_length: Option<i64>,
    /// Overrides of the pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_overrides: Option<TemplateOverrides>,
}

/// Overrides of the pod template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateOverrides {
    /// Service account of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Security context of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// Overrides of the container that copies the wrapper into the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_container: Option<ContainerOverrides>,
    /// Overrides of the function's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerOverrides>,
}

/// Overrides of one container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerOverrides {
    /// Resource requests and limits of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Environment variables to add or replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// ConfigMaps and Secrets to take more environment variables from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
}

/// A binary that runs some versions of a function.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BinaryExecutor {
    /// Path of the binary: absolute, or relative to the runner's functions directory.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Semver constraints such as "~0.4" or ">= 0.4.0 < 0.5.0", or exact tags: the versions that
    /// the binary runs.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// Versions that porch-server runs itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoExecutor {
    /// Name of the function inside porch-server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Semver constraints or exact tags: the versions that porch-server runs.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// The generations that the components have processed, and the error.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionConfigStatus {
    /// Generation that porch-server has processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_observed_generation: Option<i64>,
    /// Generation that the controllers have processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_observed_generation: Option<i64>,
    /// Generation that the function runner has processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_runner_observed_generation: Option<i64>,
    /// Error in the object, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

// === impl TemplateOverrides ===

impl TemplateOverrides {
    /// Parses the overrides of a table entry.
    ///
    /// # Panics
    /// Panics if the text has other fields or types than `templateOverrides`.
    #[must_use]
    pub(crate) fn parse(overrides: &PodOverrides) -> Self {
        serde_json::from_str(overrides.as_json())
            .expect("overrides are written from `TemplateOverrides` or `resources` of the file")
    }
}
