//! A real Kubernetes on one machine, for tests: etcd, API server, controllers, scheduler, kubelet,
//! containerd, kube-proxy, DNS and two registries, without any image from elsewhere.
//!
//! `testbed up` and `testbed down` are the commands for people; [`Testbed`] is the interface for
//! tests, and [`faults`] breaks components in ways that can be healed. This crate does not depend
//! on the runner: a test decides what runs on the cluster.
//!
//! The test bed is crash-only. `up` starts every component that does not run, whatever ended it;
//! `down` kills and removes everything, and therefore works the same after a crash.

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

pub use bed::{Testbed, Turn};
pub use components::Component;
pub use images::push_images;
pub use layout::Layout;
pub use programs::Programs;
pub use push::Target;
pub use registries::PrivateRegistry;

/// Prints progress to the terminal.
fn progress(message: &str) {
    eprintln!("testbed: {message}");
}

/// Waits until a condition is true.
///
/// # Errors
///
/// If the condition fails or is not true within the limit.
pub fn wait_until(
    what: &str,
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(25);
    let started = Instant::now();
    while !is_so()? {
        if started.elapsed() > limit {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
