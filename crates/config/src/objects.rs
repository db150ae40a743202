//! The Kubernetes objects operators write, and the definitions an API server needs for them.

mod crd;
mod function_config;
mod schema;
mod service_template;

pub use crd::{crd_documents, custom_resource_definitions};
pub use function_config::{
    BinaryExecutor, ContainerOverrides, FunctionConfig, FunctionConfigSpec, FunctionConfigStatus,
    GoExecutor, PodExecutor, TemplateOverrides,
};
pub use service_template::{ServiceTemplate, ServiceTemplateSpec};

/// The API group of both objects.
pub const GROUP: &str = "config.porch.kpt.dev";
/// The version of both objects.
pub const VERSION: &str = "v1alpha1";
