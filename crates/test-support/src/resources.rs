//! The resources that a process holds, read from /proc.

use std::{fs, path::Path};

use rustix::process::Pid;

/// Numbers of open descriptors and of children of a process; zombies count as children.
#[derive(Debug, PartialEq, Eq)]
pub struct ProcessResources {
    /// Number of open file descriptors.
    pub descriptors: usize,
    /// Number of child processes.
    pub children: usize,
}

// === impl ProcessResources ===

impl ProcessResources {
    /// Returns the resources that a process holds now.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self {
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            children: children(pid).len(),
        }
    }
}

/// Returns all children of a process.
#[must_use]
pub fn children(pid: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| {
            let child = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let child = Pid::from_raw(child)?;
            let fields = stat(child)?;
            let parent = fields.split_ascii_whitespace().nth(1)?;
            (parent == pid.to_string()).then_some(child)
        })
        .collect()
}

/// Returns whether a process has ended, as a zombie or completely.
#[must_use]
pub fn has_ended(pid: Pid) -> bool {
    stat(pid).is_none_or(|fields| fields.starts_with('Z'))
}

/// Returns whether a process exists; zombies count.
#[must_use]
pub fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Returns the peak resident memory of a process in bytes.
#[must_use]
pub fn peak_memory(pid: u32) -> usize {
    memory(pid, "VmHWM:")
}

/// Returns the resident memory of a process in bytes.
#[must_use]
pub fn resident_memory(pid: u32) -> usize {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, field: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<usize>().unwrap() << 10
}

/// Returns the fields of a process from its state on, if it exists.
fn stat(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // `pid (name) state ppid …`; the name may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.to_owned())
}
