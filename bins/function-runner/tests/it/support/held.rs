//! The resources that a process holds, read from /proc.

use std::fs;

use rustix::process::Pid;

/// Numbers of open descriptors and of children of a process; zombies count as children.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    pub descriptors: usize,
    pub children: usize,
}

pub(super) fn by(pid: u32) -> Held {
    Held {
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
        children: children(pid).len(),
    }
}

/// Returns all children of a process.
pub(super) fn children(pid: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let child = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // `pid (name) state ppid …`; the name may contain spaces and parentheses.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (parent == pid.to_string()).then(|| Pid::from_raw(child))?
        })
        .collect()
}

/// Returns the peak resident memory of a process in bytes.
pub fn peak_memory(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<usize>().unwrap() << 10
}
