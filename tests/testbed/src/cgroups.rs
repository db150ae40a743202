//! The control groups of the pods, all below one directory in every hierarchy.
//!
//! They identify the processes of a container. A fault stops these processes, and `down` kills the
//! processes of all containers, even if containerd does not run.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::daemon::Process;

/// Name of the directory, which is the kubelet's `cgroupRoot`.
pub const ROOT: &str = "krm-testbed";

const MOUNT: &str = "/sys/fs/cgroup";
/// Controllers that the kubelet manages on the unified hierarchy.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];

/// Creates the directory in every hierarchy, because the kubelet requires that its root exists.
pub fn set_up() -> Result<()> {
    for hierarchy in hierarchies()? {
        let root = hierarchy.join(ROOT);
        if hierarchy.join("cgroup.subtree_control").exists() {
            enable_controllers(&hierarchy);
        }
        match fs::create_dir(&root) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", root.display()));
            }
        }
        // With cgroup v1, a new cpuset group has no processors, so nothing can run in it.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(parents) = fs::read_to_string(hierarchy.join(file))
                && root.join("cgroup.clone_children").exists()
            {
                fs::write(root.join(file), parents)?;
            }
        }
        if root.join("cgroup.subtree_control").exists() {
            enable_controllers(&root);
        }
    }
    Ok(())
}

/// Returns every process of every pod, or of one container by its id.
pub fn processes(container: Option<&str>) -> Result<Vec<Process>> {
    let mut pids = Vec::new();
    for hierarchy in hierarchies()? {
        for group in groups(&hierarchy.join(ROOT)) {
            let is_selected = container.is_none_or(|id| group.ends_with(id));
            if is_selected && let Ok(listed) = fs::read_to_string(group.join("cgroup.procs")) {
                pids.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()));
            }
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter()
        .filter_map(|pid| Process::open(pid).transpose())
        .collect()
}

/// Removes the directories; returns `false` while a process in them still runs.
pub fn tear_down() -> Result<bool> {
    let mut empty = true;
    for hierarchy in hierarchies()? {
        let mut found = groups(&hierarchy.join(ROOT));
        // The deepest first, because a group with children cannot be removed.
        found.sort_by_key(|group| std::cmp::Reverse(group.components().count()));
        for group in found {
            match fs::remove_dir(&group) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => empty = false,
            }
        }
    }
    Ok(empty)
}

/// Returns a directory for each hierarchy: the mount itself on a unified system, else its children.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let mount = Path::new(MOUNT);
    if mount.join("cgroup.procs").exists() {
        return Ok(vec![mount.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(mount).context("no control groups are mounted")? {
        let entry = entry?;
        // A link such as `cpuacct` refers to a hierarchy that is listed under another name.
        if entry.file_type()?.is_dir() && entry.path().join("cgroup.procs").exists() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Returns a control group and all groups below it.
fn groups(root: &Path) -> Vec<PathBuf> {
    if !root.is_dir() {
        return Vec::new();
    }
    let mut found = vec![root.to_owned()];
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(groups(&entry.path()));
        }
    }
    found
}

/// Enables controllers for child groups.
///
/// Missing controllers are ignored here; the kubelet reports those that it requires.
fn enable_controllers(group: &Path) {
    for controller in CONTROLLERS {
        let _ = fs::write(
            group.join("cgroup.subtree_control"),
            format!("+{controller}"),
        );
    }
}
