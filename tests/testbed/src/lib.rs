//! A real Kubernetes on one machine, for tests: etcd, API server, controllers, scheduler, kubelet,
//! containerd, kube-proxy, DNS and two registries, without any image from elsewhere.
//!
//! `testbed up` and `testbed down` are the two calls people make; [`Testbed`] is the same for
//! tests, and [`faults`] breaks what runs in ways that heal. Nothing here knows the runner: a
//! test decides what it runs on the cluster.
//!
//! It is crash-only. `up` starts what is missing, whatever ended it; `down` kills and removes,
//! and is therefore the same after a clean day and after a crash.

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

/// Tells the person at the terminal what happens now.
fn progress(message: &str) {
    eprintln!("testbed: {message}");
}

/// Asks until the answer is yes or the limit has passed.
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
