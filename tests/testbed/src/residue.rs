//! Removes files outside the run directory and mounts inside it.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};

/// Name of the pods' network, a prefix of file names in the network cache.
pub const NETWORK: &str = "krm-testbed";

/// Cache directory of the CNI library.
const NETWORK_CACHE: &str = "/var/lib/cni/results";
/// Directory in which the kubelet links the logs of containers.
const CONTAINER_LOGS: &str = "/var/log/containers";

/// Directories of kubelet, containerd and the CNI library that cannot be configured.
pub const FIXED_DIRECTORIES: [&str; 5] = [
    "/run/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/kubelet",
    CONTAINER_LOGS,
];

/// Removes all files and mounts.
///
/// Must be called after the end of every process and before the run directory is removed.
pub fn clear(run: &Path) -> Result<()> {
    // First, because the addresses of the sockets are in the run directory.
    for socket in shim_sockets(run) {
        let _ = fs::remove_file(socket);
    }
    for entry in entries(Path::new(NETWORK_CACHE)) {
        let name = entry
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with(&format!("{NETWORK}-")) {
            let _ = fs::remove_file(entry);
        }
    }
    for entry in entries(Path::new(CONTAINER_LOGS)) {
        if fs::read_link(&entry).is_ok_and(|target| target.starts_with(run)) {
            let _ = fs::remove_file(entry);
        }
    }
    // In reverse order, because a mount may lie on top of an earlier one.
    for mount in mounts_below(run)?.iter().rev() {
        unmount(mount, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", mount.display()))?;
    }
    Ok(())
}

/// Returns the mount points below a directory, in the order in which they were mounted.
pub fn mounts_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter(|mount| mount.starts_with(directory) && mount != directory)
        .collect())
}

/// Returns the sockets of containerd's shims, which are always in /run/containerd, named by a hash.
fn shim_sockets(run: &Path) -> Vec<PathBuf> {
    let tasks = run.join("containerd-state/io.containerd.runtime.v2.task/k8s.io");
    entries(&tasks)
        .iter()
        .filter_map(|task| fs::read(task.join("bootstrap.json")).ok())
        .filter_map(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .filter_map(|bootstrap| {
            Some(PathBuf::from(
                bootstrap["address"].as_str()?.strip_prefix("unix://")?,
            ))
        })
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(directory).into_iter().flatten().flatten();
    listing.map(|entry| entry.path()).collect()
}

/// Decodes a path; the kernel writes spaces and similar bytes as a backslash and three octal
/// digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut decoded = Vec::new();
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                decoded.push(escaped);
                rest = &tail[3..];
            }
            _ => {
                decoded.push(byte);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_escaped_mount_points() {
        assert_eq!(unescape(br"/a\040b/c\134d"), PathBuf::from(r"/a b/c\d"));
        assert_eq!(unescape(b"/plain123"), PathBuf::from("/plain123"));
    }
}
