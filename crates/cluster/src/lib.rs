//! Kubernetes: the client, custom resources, configuration objects, templates, pods and services.
//!
//! ```text
//! FunctionConfig objects ─→ function_configs ─→ declarations ─→ runner_config::Configuration
//! templates, pods, services ─→ watches ─→ Observation ─→ driver of the pod runtime
//! Create ─→ render_pod(template, image, overrides) ─→ requests ─→ API server
//! ```
//!
//! This crate carries out the pool's actions and reports the state of objects. It makes no
//! decisions: the pool decides which pods are created, kept or removed. It contains no gRPC and no
//! connections to pods. It uses only the verbs that the RBAC rules of existing installations grant.

mod client;
mod error;
mod function_configs;
mod names;
pub mod objects;
mod pods;
mod pull_secret;
mod requests;
mod services;
mod templates;
#[cfg(test)]
mod testing;
mod watches;

pub use client::{ClusterOptions, ConnectError, connect};
pub use error::{ApiError, NoAnswer};
pub use function_configs::{
    FunctionConfigWatch, ListError, ListedFunctionConfig, WatchState, declaration,
    list_function_configs, watch_function_configs,
};
pub use names::{
    IMAGE_LABEL, POD_TEMPLATE, PORT, RECLAIM_AFTER, SERVICE_TEMPLATE, TEMPLATE_VERSION,
    own_namespace,
};
pub use pods::{
    AnnounceTarget, Injection, InjectionPolicy, InjectionReason, InjectionStatus, Injector,
    Pinning, PodObservation, RenderOptions, observe, overrides_fingerprint, render_pod, sample_pod,
};
pub use pull_secret::PullSecret;
pub use requests::{Cluster, CreateOutcome, DeleteOutcome};
pub use services::{ServiceObservation, render_service};
pub use templates::{MissingTemplates, TemplateError, TemplateObjects, TemplateSource, Templates};
pub use watches::{Observation, watch};
