//! A wrapper in a configurable environment.

mod pod_limit;
mod programs;
mod root;
mod setup;

pub use pod_limit::PodLimit;
pub use programs::{repository, set_label, set_namespace, wrapper_for_arm, wrapper_server};
pub use root::Root;
pub use setup::Setup;
