//! What programs leave outside the run directory, or mounted inside it.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};

/// The name of the pods' network; it begins the names of files in the network cache.
pub const NETWORK: &str = "krm-testbed";

/// Where the container network library remembers what it did, whatever it is told.
const NETWORK_CACHE: &str = "/var/lib/cni/results";
/// Where the kubelet links the logs of containers, likewise.
const CONTAINER_LOGS: &str = "/var/log/containers";

/// Directories that kubelet, containerd and the network library insist on.
pub const FOREIGN_DIRECTORIES: [&str; 5] = [
    "/run/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/kubelet",
    CONTAINER_LOGS,
];

/// Removes all of it. To be called when every process is gone, before the run directory goes.
pub fn clear(run: &Path) -> Result<()> {
    // Their addresses are written in the run directory, so this comes first.
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
    // The last mounted first: it may lie upon an earlier one.
    for mount in mounts_below(run)?.iter().rev() {
        unmount(mount, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", mount.display()))?;
    }
    Ok(())
}

/// Mount points below a directory, in the order in which they were mounted.
pub fn mounts_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter(|mount| mount.starts_with(directory) && mount != directory)
        .collect())
}

/// The sockets of containerd's shims: always under /run/containerd, by their hash alone.
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

/// The kernel writes spaces and their like as a backslash and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                plain.push(escaped);
                rest = &tail[3..];
            }
            _ => {
                plain.push(byte);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_mount_points_are_read_as_they_are() {
        assert_eq!(unescape(br"/a\040b/c\134d"), PathBuf::from(r"/a b/c\d"));
        assert_eq!(unescape(b"/plain123"), PathBuf::from("/plain123"));
    }
}
