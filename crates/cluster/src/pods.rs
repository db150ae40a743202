//! Function pods: rendering, injection of the wrapper, observation.

mod injection;
mod observe;
mod render;

pub use injection::{InjectionPolicy, InjectionReason, InjectionStatus, Injector};
pub use observe::{PodObservation, observe};
pub use render::{
    AnnounceTarget, Injection, Pinning, RenderOptions, overrides_fingerprint, render_pod,
    sample_pod,
};

pub(crate) use render::fingerprint_of;
