//! A one-node Kubernetes cluster for tests: etcd, API server, controllers, scheduler, kubelet,
//! containerd, kube-proxy, DNS and two registries. All images are built on this machine.
//!
//! `testbed up` and `testbed down` start and remove it; [`Testbed`] is the interface for tests, and
//! [`faults`] disturbs components and restores them. This crate does not depend on the runner: a
//! test decides what runs on the cluster.
//!
//! The test bed is crash-only. `up` starts every component that does not run, also after a crash;
//! `down` kills all processes and removes everything, whether components run or not.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub mod addresses;
mod bed;
mod certificates;
mod cgroups;
mod components;
mod configuration;
mod daemon;
pub mod faults;
mod images;
mod layout;
mod network;
mod programs;
mod push;
mod registries;
mod residue;
mod settings;

pub use bed::{ClusterLock, Testbed};
pub use components::Component;
pub use images::push_images;
pub use layout::Layout;
pub use programs::Programs;
pub use push::Target;
pub use registries::PrivateRegistry;

/// Prints a progress message to standard error.
fn progress(message: &str) {
    eprintln!("testbed: {message}");
}

/// Waits until a condition is true; `what` names it in the error.
///
/// # Errors
///
/// If the condition fails or is not true within the limit.
pub fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(25);
    let started = Instant::now();
    while !condition()? {
        if started.elapsed() > limit {
            bail!("timed out after {} s waiting for {what}", limit.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
