//! The ports and secrets of a test bed, and the state of the machine that `down` restores.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    daemon,
    layout::{self, Layout},
    residue,
};

/// Kernel settings that the kubelet or the test bed changes; `down` restores them.
const SYSCTLS: &[&str] = &[
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

/// Port of the open registry, unless another program uses it.
const PREFERRED_REGISTRY_PORT: u16 = 5000;

/// Ports, secrets and earlier kernel settings, written to a file before `up` changes anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Id of the boot that the test bed belongs to; after a reboot only its files are left.
    pub boot: String,
    /// Port of etcd for the API server.
    pub etcd_port: u16,
    /// Port of etcd for other members; etcd requires one.
    pub etcd_peer_port: u16,
    /// Port of the open registry on loopback.
    pub registry_port: u16,
    /// Bearer token of the cluster's administrator.
    pub admin_token: String,
    /// User of the private registry.
    pub registry_user: String,
    /// First password of that user.
    pub registry_password: String,
    sysctls: BTreeMap<String, String>,
    /// Directories outside the run directory that did not exist before.
    new_directories: Vec<PathBuf>,
}

// === impl Settings ===

impl Settings {
    /// Returns the settings of the existing test bed, if there is one.
    pub fn load(layout: &Layout) -> Result<Option<Self>> {
        let path = Self::path(layout);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // A file that another version of this program wrote is ignored.
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Chooses settings and writes them to the file.
    pub fn choose(layout: &Layout) -> Result<Self> {
        let settings = Self {
            boot: daemon::boot_id()?,
            etcd_port: free_port()?,
            etcd_peer_port: free_port()?,
            registry_port: match TcpListener::bind((Ipv4Addr::LOCALHOST, PREFERRED_REGISTRY_PORT)) {
                Ok(_) => PREFERRED_REGISTRY_PORT,
                Err(_) => free_port()?,
            },
            admin_token: random_hex()?,
            registry_user: "tester".to_owned(),
            registry_password: random_hex()?,
            sysctls: SYSCTLS
                .iter()
                .filter_map(|&name| Some((name.to_owned(), read_sysctl(name)?)))
                .collect(),
            new_directories: residue::FIXED_DIRECTORIES
                .iter()
                .map(PathBuf::from)
                .filter(|directory| !directory.exists())
                .collect(),
        };
        layout::make_dir(&layout.run())?;
        layout::write(&Self::path(layout), serde_json::to_vec_pretty(&settings)?)?;
        Ok(settings)
    }

    /// Restores the kernel settings.
    pub fn restore_sysctls(&self) -> Result<()> {
        for (name, before) in &self.sysctls {
            if read_sysctl(name).as_ref() != Some(before) {
                write_sysctl(name, before)?;
            }
        }
        Ok(())
    }

    /// Removes the directories that did not exist before.
    pub fn remove_new_directories(&self) -> Result<()> {
        for directory in self
            .new_directories
            .iter()
            .filter(|directory| directory.exists())
        {
            fs::remove_dir_all(directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        Ok(())
    }

    fn path(layout: &Layout) -> PathBuf {
        layout.in_run("settings.json")
    }
}

/// Sets a kernel setting by its path below `/proc/sys`.
pub fn write_sysctl(name: &str, value: &str) -> Result<()> {
    fs::write(Path::new("/proc/sys").join(name), value)
        .with_context(|| format!("cannot set {name} to {value}"))
}

fn read_sysctl(name: &str) -> Option<String> {
    let value = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
    Some(value.trim().to_owned())
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// Returns 16 random bytes in hexadecimal.
pub fn random_hex() -> Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
