//! Custom resources that operators write, and their definitions (CRDs).

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

/// API group of both kinds.
pub const GROUP: &str = "config.porch.kpt.dev";
/// API version of both kinds.
pub const VERSION: &str = "v1alpha1";
