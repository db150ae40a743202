//! What the tests on a real cluster share: a stage of their own, waits with limits, pods made by
//! hand, and the runner as a process.
//!
//! A test says `on_cluster(async |stage| …)`. It gets a namespace nobody else uses; when it fails,
//! what the cluster knows about that namespace is printed before it is deleted. Tests run beside
//! each other, except those that break the cluster, which say `on_disturbed_cluster`.
//!
//! Without a cluster these tests fail and say how to start one; they are never skipped.

mod account;
mod define;
pub mod deployment;
mod evaluate;
mod fleet;
pub mod go_runner;
mod load;
mod pods;
mod refusal;
mod report;
mod runner;
mod stage;
mod wait;

pub use account::{Account, config_map_of_runner, config_maps_of_runner};
pub use define::{configure_pods, define};
pub use evaluate::{connect, evaluate, evaluate_within, resource_list};
pub use fleet::{
    HOME, busy_pod, function_container, function_pod_uids, function_pods, function_services,
    is_ready, no_pods_and_no_services, remove_at_once, service_of, store_template,
};
pub use load::Load;
pub use pods::{FunctionPod, Injection};
pub use refusal::Refusal;
pub use runner::{Runner, free_port, program};
pub use stage::{Stage, on_cluster, on_disturbed_cluster, running_testbed};
pub use wait::{LIMIT, eventually};
