//! Starts and stops the whole test bed, and gives access to a running one.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use runner_devtools::{Remedy, failure};

use crate::{
    cgroups,
    components::{Component, ComponentContext},
    configuration,
    daemon::{self, Daemon},
    images,
    layout::{self, Layout},
    network,
    programs::Programs,
    progress,
    registries::{DOCKER_CONFIG, PrivateRegistry},
    residue,
    settings::{self, Settings},
    wait_until,
};

/// Time limit for a component to become ready after its start.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for all killed processes to end, and for their control groups to be removed.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for init to reap all ended processes.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// A test bed that ran when this value was created.
#[derive(Clone, Debug)]
pub struct Testbed {
    pub(crate) layout: Layout,
    pub(crate) settings: Settings,
    pub(crate) programs: Programs,
}

/// A shared or exclusive lock on the cluster, held until this value is dropped.
#[derive(Debug)]
pub struct ClusterLock {
    _file: File,
}

// === impl Testbed ===

impl Testbed {
    /// Starts all components that do not run.
    pub fn up(layout: &Layout) -> Result<Self> {
        require_root("up")?;
        let programs = Programs::built(layout)?;
        let _lock = take_lock(layout)?;
        let started = Instant::now();
        let settings = match Settings::load(layout)? {
            Some(settings) if settings.boot == daemon::boot_id()? => settings,
            _ => {
                if layout.run().exists() {
                    progress("removing the remains of an earlier test bed");
                    Self::clear(layout)?;
                }
                network::require_no_other_kubernetes()?;
                Settings::choose(layout)?
            }
        };
        let bed = Self {
            layout: layout.clone(),
            settings,
            programs,
        };
        network::set_up()?;
        settings::write_sysctl("net/ipv4/ip_forward", "1")?;
        cgroups::set_up()?;
        configuration::write(layout, &bed.settings)?;
        bed.start_all(&Component::INDEPENDENT)?;
        bed.start(Component::ApiServer)?;
        bed.start_all(&Component::CLIENTS)?;
        wait_until("the default service account", READY_TIMEOUT, || {
            Ok(bed
                .context()
                .kubectl_succeeds(&["get", "serviceaccount", "default"]))
        })?;
        progress(&format!("up in {:.1} s", started.elapsed().as_secs_f32()));
        Ok(bed)
    }

    /// Ends every process and removes everything that the test bed created.
    ///
    /// Succeeds if there is no test bed.
    pub fn down(layout: &Layout) -> Result<()> {
        if !layout.run().exists() {
            progress("no test bed is up");
            return Ok(());
        }
        require_root("down")?;
        let _lock = take_lock(layout)?;
        let started = Instant::now();
        Self::clear(layout)?;
        progress(&format!("down in {:.1} s", started.elapsed().as_secs_f32()));
        Ok(())
    }

    /// Returns the running test bed of this user.
    pub fn running() -> Result<Self> {
        Self::running_at(&Layout::of_user()?)
    }

    /// Returns the running test bed of this layout.
    pub fn running_at(layout: &Layout) -> Result<Self> {
        let none = || failure("no test bed is up", "start one: make testbed-up");
        let settings = Settings::load(layout)?.ok_or_else(none)?;
        if settings.boot != daemon::boot_id()? {
            return Err(none());
        }
        let programs = Programs::built(layout)?;
        Ok(Self {
            layout: layout.clone(),
            settings,
            programs,
        })
    }

    /// Checks that every component runs.
    pub fn require_complete(&self) -> Result<()> {
        let mut missing = Vec::new();
        for component in Component::all() {
            if self.pid(component)?.is_none() {
                missing.push(component.name());
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(failure(
                format!("these components do not run: {missing}"),
                "start them: make testbed-up",
            ));
        }
        Ok(())
    }

    /// Takes a shared lock on the cluster; waits while a test holds the exclusive lock.
    pub fn lock_shared(&self) -> Result<ClusterLock> {
        let file = File::create(self.layout.tests_lock())?;
        file.lock_shared()?;
        Ok(ClusterLock { _file: file })
    }

    /// Takes the exclusive lock, for a test that disturbs components that other tests use.
    pub fn lock_exclusive(&self) -> Result<ClusterLock> {
        let file = File::create(self.layout.tests_lock())?;
        file.lock()?;
        Ok(ClusterLock { _file: file })
    }

    /// Returns the path of the administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.in_run("kubeconfig")
    }

    /// Returns the host of the registry without a password, as image references contain it.
    #[must_use]
    pub fn open_registry(&self) -> String {
        format!("localhost:{}", self.settings.registry_port)
    }

    /// Returns an image of the open registry, such as `functions/count`, pinned to its digest.
    pub fn pinned_image(&self, name: &str) -> Result<String> {
        images::pinned(self, name)
    }

    /// Returns the private registry, which requires a password.
    #[must_use]
    pub fn private_registry(&self) -> PrivateRegistry {
        PrivateRegistry {
            host: configuration::private_registry(),
            ca: self.layout.in_run("certs/registry-ca.crt"),
            user: self.settings.registry_user.clone(),
            password: self.settings.registry_password.clone(),
            docker_config: self.layout.in_run("config").join(DOCKER_CONFIG),
        }
    }

    /// Returns the path of a component's log.
    #[must_use]
    pub fn log(&self, component: Component) -> PathBuf {
        self.layout.log(component.name())
    }

    /// Returns the pid of a component if it runs.
    pub fn pid(&self, component: Component) -> Result<Option<i32>> {
        let process = self.daemon(component, &self.layout.run()).process()?;
        Ok(process.map(|process| process.pid()))
    }

    /// Returns the path of the Kubernetes program, which is kubectl if its first argument is
    /// `kubectl`.
    pub fn kube(&self) -> Result<PathBuf> {
        self.programs.path("kube")
    }

    /// Starts a component unless it runs, and waits until it is ready.
    pub fn start(&self, component: Component) -> Result<()> {
        self.start_all(&[component])
    }

    fn start_all(&self, components: &[Component]) -> Result<()> {
        for &component in components {
            self.launch(component)?;
        }
        for &component in components {
            self.wait_until_ready(component)?;
        }
        Ok(())
    }

    /// Starts the API server and restarts its clients.
    ///
    /// Clients that lost the API server would retry only after 30 s, some of them twice. A kubelet
    /// reports its node as not ready for a moment after its start; the controllers, which would
    /// then keep pods away from the node, start last.
    pub(crate) fn start_api_server(&self) -> Result<()> {
        for component in Component::CLIENTS {
            self.kill(component)?;
        }
        self.start(Component::ApiServer)?;
        let (controllers, others) = Component::CLIENTS.split_at(1);
        self.start_all(others)?;
        self.start_all(controllers)
    }

    fn launch(&self, component: Component) -> Result<()> {
        let run = self.layout.run();
        let daemon = self.daemon(component, &run);
        let (program, arguments) = component.command(self.context())?;
        if component == Component::Kubelet && daemon.process()?.is_none() {
            self.context().mark_node_unknown();
        }
        if daemon.ensure_running(&self.programs.search_path(), &program, &arguments)? {
            progress(&format!("starting {}", component.name()));
        }
        Ok(())
    }

    fn wait_until_ready(&self, component: Component) -> Result<()> {
        let run = self.layout.run();
        let daemon = self.daemon(component, &run);
        wait_until(component.name(), READY_TIMEOUT, || {
            if component.is_ready(self.context()) {
                return Ok(true);
            }
            if daemon.process()?.is_none() {
                progress(&format!("last lines of {}:", daemon.log.display()));
                eprintln!("{}", daemon.log_tail());
                bail!("{} exited", component.name());
            }
            Ok(false)
        })
        .remedy(format!("read its log: {}", daemon.log.display()))?;
        if component == Component::OpenRegistry {
            images::push_pause(self)?;
        }
        Ok(())
    }

    /// Stops a component and waits until it has ended.
    pub fn stop(&self, component: Component) -> Result<()> {
        self.daemon(component, &self.layout.run()).stop()
    }

    /// Kills a component, like a crash.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.daemon(component, &self.layout.run()).kill()
    }

    pub(crate) fn context(&self) -> ComponentContext<'_> {
        ComponentContext {
            layout: &self.layout,
            settings: &self.settings,
            programs: &self.programs,
        }
    }

    fn daemon<'a>(&self, component: Component, run: &'a std::path::Path) -> Daemon<'a> {
        Daemon {
            name: component.name(),
            run,
            log: self.log(component),
        }
    }

    fn clear(layout: &Layout) -> Result<()> {
        let run = layout.run();
        let settings = Settings::load(layout)?;
        progress("killing processes");
        let mut ended = Vec::new();
        // Repeated, because a process may have started another one before it ended.
        wait_until("the end of every process", END_TIMEOUT, || {
            let mut left = daemon::marked(&run)?;
            left.extend(cgroups::processes(None)?);
            for process in &left {
                process.kill()?;
                ended.push(process.pid());
            }
            Ok(left.is_empty())
        })?;
        // All processes have ended. Zombies only clutter the process list, so a timeout is ignored.
        let _ = wait_until("init to reap every process", REAP_TIMEOUT, || {
            Ok(!ended.iter().any(|pid| daemon::is_zombie(*pid)))
        });
        progress("removing mounts, control groups, iptables rules and addresses");
        residue::clear(&run)?;
        wait_until(
            "the removal of control groups",
            END_TIMEOUT,
            cgroups::tear_down,
        )?;
        network::tear_down()?;
        if let Some(settings) = settings {
            settings.restore_sysctls()?;
            settings.remove_new_directories()?;
        }
        // `down` is complete if this directory does not exist, so a single rename removes it.
        let gone = run.with_added_extension("gone");
        if gone.exists() {
            fs::remove_dir_all(&gone)?;
        }
        fs::rename(&run, &gone)?;
        fs::remove_dir_all(&gone).with_context(|| format!("cannot remove {}", gone.display()))
    }
}

fn require_root(what: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(failure(
            format!(
                "`testbed {what}` starts containers and changes the network: it must run as root"
            ),
            format!("run: sudo make testbed-{what}"),
        ));
    }
    Ok(())
}

/// Takes the lock of `up` and `down`, which is held while the returned file is open.
fn take_lock(layout: &Layout) -> Result<File> {
    let path = layout.lock();
    if let Some(parent) = path.parent() {
        layout::make_dir(parent)?;
    }
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        progress("waiting for another up or down to finish");
        file.lock()?;
    }
    Ok(file)
}
