//! `FunctionConfig`: how one function runs. The doc comments here are what `kubectl explain` says.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, PodSecurityContext, ResourceRequirements};
use kube::CustomResource;
use runner_config::PodOverrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Says how one function runs: which binary or pods stand for which of its versions.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "config.porch.kpt.dev",
    version = "v1alpha1",
    kind = "FunctionConfig",
    doc = "How one function runs: as a binary, in pods or inside porch-server.",
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
    /// The function's bare name, such as set-namespace: the last part of its image's path.
    #[schemars(length(min = 1))]
    pub image: String,
    /// The repositories the function may come from. An empty text, or an empty list, is the
    /// runner's default prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// How the function's pods are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_executor: Option<PodExecutor>,
    /// A binary beside the runner that stands for some of the function's versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_executor: Option<BinaryExecutor>,
    /// Versions that porch-server runs by itself. The function runner ignores this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_executor: Option<GoExecutor>,
}

/// How a function's pods are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExecutor {
    /// Semver constraints such as "~0.4" or ">= 0.4.0 < 0.5.0", or exact tags: the versions that
    /// the settings beside it apply to and that a pod is kept ready for. An empty list matches no
    /// version, "*" matches all. The template overrides apply to every version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long an idle pod is kept, such as 30m or 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration", "default" = "30m"))]
    pub time_to_live: Option<String>,
    /// The most pods of one version at once; 0 is the runner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel_executions: Option<i64>,
    /// How many requests may wait for a pod before another is started; 0 is the runner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_max_queue_length: Option<i64>,
    /// What differs from the pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_overrides: Option<TemplateOverrides>,
}

/// What differs from the pod template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateOverrides {
    /// The service account the pods run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The pods' security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// What differs in the container that brings the wrapper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_container: Option<ContainerOverrides>,
    /// What differs in the function's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerOverrides>,
}

/// What differs in one container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerOverrides {
    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Environment variables from `ConfigMap`s and `Secret`s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
}

/// A binary that stands for some of a function's versions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BinaryExecutor {
    /// The binary: an absolute path, or one under the runner's functions directory.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Semver constraints such as "~0.4" or ">= 0.4.0 < 0.5.0", or exact tags: the versions that
    /// the binary stands for.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// Versions that porch-server runs by itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoExecutor {
    /// The function's name inside porch-server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Semver constraints or exact tags: the versions that porch-server runs.
    #[schemars(length(min = 1))]
    pub tags: Vec<String>,
}

/// Which components have acted on which generation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionConfigStatus {
    /// The generation porch-server acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_observed_generation: Option<i64>,
    /// The generation the controllers acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_observed_generation: Option<i64>,
    /// The generation the function runner acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_runner_observed_generation: Option<i64>,
    /// What is wrong with the object.
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
