//! Kubernetes side of the pod runtime: templates, pods, services and the pull secret.
//!
//! ```text
//! Create ─→ render(template, image, settings) ─→ act ─→ API server ─→ watch ─→ observe ─→ Observed
//! ```
//!
//! This crate carries out the pool's actions and reports what the API server shows. It makes no
//! decisions: the pool decides which pods are created, kept or removed. It contains no gRPC and no
//! connections to pods. It uses only the verbs that the RBAC rules of existing installations grant.

mod error;
mod injection;
mod names;
mod observe;
mod pull_secret;
mod render;
mod requests;
mod template;
#[cfg(test)]
mod testing;
mod watch;

pub use error::ApiError;
pub use injection::{InjectionPolicy, InjectionReason, InjectionStatus, Injector};
pub use names::{
    IMAGE_LABEL, POD_TEMPLATE, PORT, RECLAIM_AFTER, SERVICE_TEMPLATE, TEMPLATE_VERSION,
    own_namespace,
};
pub use observe::{PodObservation, observe};
pub use pull_secret::PullSecret;
pub use render::{
    AnnounceTarget, Injection, Pinning, RenderOptions, overrides_fingerprint, render_pod,
    render_service, sample_pod,
};
pub use requests::{Cluster, CreateOutcome, DeleteOutcome};
pub use template::{MissingTemplates, TemplateError, TemplateObjects, TemplateSource, Templates};
pub use watch::{Observation, ServiceObservation, watch};
