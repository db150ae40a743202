//! Shared parts of the tests on a real cluster: a stage for each test, pods
//! created without a runner, and the runner as a process.
//!
//! A test calls `on_cluster(async |stage| …)` and gets its own namespace. If it fails, the state of
//! the namespace is printed before the namespace is deleted. Tests run in parallel, except those
//! that disturb the cluster, which call `on_disturbed_cluster`.
//!
//! Without a cluster these tests fail and print the command that starts one; they are never
//! skipped.

mod account;
mod definitions;
pub mod deployment;
mod evaluate;
mod fleet;
pub mod go_runner;
mod load;
mod pod_rejection;
mod pods;
mod report;
mod runner;
mod stage;

pub use account::{Account, config_map_of_runner, config_maps_of_runner};
pub use definitions::{configure_pods, install_definitions};
pub use evaluate::{connect, evaluate, evaluate_within, resource_list};
pub use fleet::{
    ANNOUNCE_FLAGS, busy_pod, delete_without_grace_period, function_container, function_pod_uids,
    function_pods, function_services, is_ready, service_of, store_template,
    wait_for_no_pods_and_services,
};
pub use load::Load;
pub use pod_rejection::PodRejection;
pub use pods::{FunctionPod, Injection};
pub use runner::{Runner, program};
pub use runner_test_support::{LIMIT, eventually_async as eventually};
pub use stage::{Stage, on_cluster, on_disturbed_cluster, running_testbed};
