//! Faults that a test can cause in the cluster.
//!
//! Each fault lasts until the returned value is dropped, also if a test panics. An error while
//! healing is printed to standard error, because a drop cannot return it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::{
    Component, Testbed, cgroups, daemon::Process, network, registries, settings, wait_until,
};

mod slow_registry;

pub use slow_registry::{Pace, SlowRegistry};

/// A fault that is healed when this value is dropped.
#[must_use = "a fault heals as soon as it is dropped"]
pub struct Fault<'a> {
    description: String,
    heal: Option<Box<dyn FnOnce() -> Result<()> + Send + 'a>>,
}

/// Time limit for all processes of a container to be stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

// === impl Fault ===

impl<'a> Fault<'a> {
    fn new(description: impl Into<String>, heal: impl FnOnce() -> Result<()> + Send + 'a) -> Self {
        Self {
            description: description.into(),
            heal: Some(Box::new(heal)),
        }
    }

    /// Heals the fault now.
    pub fn heal(mut self) -> Result<()> {
        self.heal.take().map_or(Ok(()), |heal| heal())
    }
}

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.heal.take().map(|heal| heal()) {
            eprintln!("testbed: cannot heal {}: {error:#}", self.description);
        }
    }
}

impl Testbed {
    /// Kills the API server: connections break, and new ones are refused.
    pub fn without_api_server(&self) -> Result<Fault<'_>> {
        self.kill(Component::ApiServer)?;
        let name = Component::ApiServer.name();
        Ok(Fault::new(name, || self.start_api_server()))
    }

    /// Kills the kubelet: containers run on, but nothing is started, stopped or reported.
    pub fn without_kubelet(&self) -> Result<Fault<'_>> {
        self.kill(Component::Kubelet)?;
        let name = Component::Kubelet.name();
        Ok(Fault::new(name, || self.start(Component::Kubelet)))
    }

    /// Stops a component's process: it keeps its connections but does not answer.
    pub fn with_hanging(&self, component: Component) -> Result<Fault<'_>> {
        let pid = self.pid(component)?;
        let process = pid.map(Process::open).transpose()?.flatten();
        let process = process.with_context(|| format!("{} does not run", component.name()))?;
        process.signal(Signal::STOP)?;
        Ok(Fault::new(component.name(), move || {
            process.signal(Signal::CONT)
        }))
    }

    /// Stops every process of a container.
    ///
    /// `id` is that of the pod's status, with or without the prefix `containerd://`.
    pub fn with_paused_container(&self, id: &str) -> Result<Fault<'_>> {
        let id = id.strip_prefix("containerd://").unwrap_or(id).to_owned();
        if cgroups::processes(Some(&id))?.is_empty() {
            bail!("no process runs in container {id}");
        }
        // Repeated until no process is new, because one may fork while its siblings are stopped.
        let mut stopped = Vec::new();
        wait_until(
            "all processes of the container to stop",
            STOP_TIMEOUT,
            || {
                let processes = cgroups::processes(Some(&id))?;
                let pids: Vec<i32> = processes.iter().map(Process::pid).collect();
                for process in &processes {
                    process.signal(Signal::STOP)?;
                }
                Ok(std::mem::replace(&mut stopped, pids.clone()) == pids)
            },
        )?;
        let description = format!("container {id}");
        Ok(Fault::new(description, move || {
            for process in cgroups::processes(Some(&id))? {
                process.signal(Signal::CONT)?;
            }
            Ok(())
        }))
    }

    /// Kills every process with this name in a container with SIGKILL; returns whether there was
    /// one.
    ///
    /// This fault is not healed; the kubelet reacts to it as to any ended process.
    pub fn kill_in_container(&self, id: &str, program: &str) -> Result<bool> {
        let found = processes_named(id, program)?;
        for process in &found {
            process.signal(Signal::KILL)?;
        }
        Ok(!found.is_empty())
    }

    /// Returns whether a program with this name runs in a container.
    pub fn runs_in_container(&self, id: &str, program: &str) -> Result<bool> {
        Ok(!processes_named(id, program)?.is_empty())
    }

    /// Drops all packets to and from a pod; nothing is refused.
    ///
    /// `container` is any container of the pod, because they share the network.
    pub fn with_cut_network(&self, container: &str) -> Result<Fault<'_>> {
        let id = container.strip_prefix("containerd://").unwrap_or(container);
        let processes = cgroups::processes(Some(id))?;
        let process = processes
            .first()
            .with_context(|| format!("no process in container {id}"))?;
        // The namespace stays reachable through this path as long as the process is held. The rules
        // in it disappear with the pod, so there is nothing to clean up on the machine.
        let namespace = format!("--net=/proc/{}/ns/net", process.pid());
        let change = |action: &'static str, namespace: &str| -> Result<()> {
            for chain in ["INPUT", "OUTPUT"] {
                let rule = [
                    "iptables", "--wait", action, chain, "!", "-i", "lo", "-j", "DROP",
                ];
                let rule = match chain {
                    "INPUT" => rule,
                    _ => [
                        "iptables", "--wait", action, chain, "!", "-o", "lo", "-j", "DROP",
                    ],
                };
                let mut arguments = vec![namespace];
                arguments.extend(rule);
                network::run("nsenter", &arguments)?;
            }
            Ok(())
        };
        change("-I", &namespace)?;
        Ok(Fault::new(
            format!("the network of container {id}"),
            move || change("-D", &namespace),
        ))
    }

    /// Changes the private registry's password, so that the configured one is no longer valid.
    pub fn with_expired_registry_password(&self) -> Result<Fault<'_>> {
        let user = &self.settings.registry_user;
        registries::set_password(&self.layout, user, &settings::random_hex()?)?;
        Ok(Fault::new("the registry's password", move || {
            registries::set_password(&self.layout, user, &self.settings.registry_password)
        }))
    }

    /// Makes the open registry available to nodes under another name.
    pub fn with_registry_named(&self, host: &str) -> Result<Fault<'static>> {
        let directory = self.layout.in_run("registries").join(host);
        if directory.exists() {
            return Ok(Fault::new(host, || Ok(())));
        }
        let endpoint = format!("http://127.0.0.1:{}", self.settings.registry_port);
        registries::write_hosts_file(&self.layout, host, &endpoint, None)?;
        Ok(Fault::new(host, move || {
            Ok(std::fs::remove_dir_all(directory)?)
        }))
    }

    /// Starts a slow proxy to the open registry.
    pub fn slow_registry(&self, pace: Pace) -> Result<SlowRegistry<'_>> {
        SlowRegistry::start(self, pace)
    }
}

/// Returns the processes of a container that have this program name.
fn processes_named(container: &str, name: &str) -> Result<Vec<Process>> {
    let id = container.strip_prefix("containerd://").unwrap_or(container);
    let mut found = cgroups::processes(Some(id))?;
    found.retain(|process| process.name().as_deref() == Some(name));
    Ok(found)
}
