//! Orphans: processes that functions leave behind.
//!
//! A function's process group is killed with its evaluation. A process that left the group (for
//! example by `setsid`) becomes an orphan, and the kernel makes it a child of this process: always
//! if this process is PID 1 of a pod, and otherwise because it is a *subreaper*. A sweep kills and
//! reaps such orphans.
//!
//! Orphans are recognised by process group: a function's processes are in the group of a recorded
//! leader or in a group that they created. Children in the group of this process were started by
//! other parts of the program (for example a credential helper), and a sweep ignores them.

use std::{
    collections::HashSet,
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitOptions, getpgid, getpid, kill_process, waitpid};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// Delay (1 s) before a sweep: a busy server sweeps rarely, and orphans do not accumulate.
const SWEEP_DELAY: Duration = Duration::from_secs(1);

/// Interval (30 s) of sweeps while no function ends: other programs, such as `kubectl exec`, also
/// leave orphans.
const IDLE_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Held for reading while a leader is started and recorded, and for writing while a sweep looks for
/// children that are not recorded.
static START_LOCK: RwLock<()> = RwLock::new(());

/// Pids of the leaders that are not reaped yet.
static LEADERS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// Notified when a leader was reaped: its orphans are children of this process from then on.
static LEADER_REAPED: Notify = Notify::const_new();

/// A task that kills and reaps orphans after functions have ended. Stops when dropped.
#[derive(Debug)]
pub struct OrphanSweeper(JoinHandle<()>);

/// Makes orphaned descendants children of this process, as if it were PID 1.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(io::Error::from)
}

/// Starts a leader and records it, so that no sweep takes it for an orphan.
pub(crate) fn start_leader<T>(
    start: impl FnOnce() -> io::Result<T>,
    pid: impl FnOnce(&T) -> Pid,
) -> io::Result<T> {
    let _guard = START_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    let started = start()?;
    leaders()
        .get_or_insert_default()
        .insert(pid(&started).as_raw_pid());
    Ok(started)
}

/// Removes the record of a leader that was reaped.
pub(crate) fn remove_leader(leader: Pid) {
    if let Some(leaders) = leaders().as_mut() {
        leaders.remove(&leader.as_raw_pid());
    }
    LEADER_REAPED.notify_one();
}

/// Kills the process groups of all functions.
pub(crate) fn kill_all_groups() {
    for leader in leaders()
        .iter()
        .flatten()
        .copied()
        .filter_map(Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(leader, Signal::KILL);
    }
}

fn leaders() -> MutexGuard<'static, Option<HashSet<i32>>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl OrphanSweeper ===

impl OrphanSweeper {
    /// Starts the task. Needs a tokio runtime.
    ///
    /// It does not use SIGCHLD, which would interrupt a thread for every process that ends.
    #[must_use]
    pub fn start() -> Self {
        Self(tokio::spawn(async {
            loop {
                let _ = timeout(IDLE_SWEEP_INTERVAL, LEADER_REAPED.notified()).await;
                sleep(SWEEP_DELAY).await;
                // The next sweep reaps a killed orphan, whose children are then orphans as well.
                while sweep() {
                    sleep(SWEEP_DELAY).await;
                }
            }
        }))
    }
}

impl Drop for OrphanSweeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reaps dead orphans, and kills living ones whose function has ended.
///
/// Returns whether it found any: each may have left orphans in turn.
fn sweep() -> bool {
    let mut found = false;
    let _guard = START_LOCK.write().unwrap_or_else(PoisonError::into_inner);
    let leaders = leaders().clone().unwrap_or_default();
    let own_group = rustix::process::getpgrp();
    for pid in children() {
        if leaders.contains(&pid.as_raw_pid()) {
            continue;
        }
        match getpgid(Some(pid)) {
            Ok(group) if group == own_group => continue,
            // The function still runs: this process is killed with its group.
            Ok(group) if leaders.contains(&group.as_raw_pid()) => {}
            _ => {
                let _ = kill_process(pid, Signal::KILL);
                found = true;
            }
        }
        found |= matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)));
    }
    found
}

/// Returns the children of this process.
fn children() -> Vec<Pid> {
    children_by_task().unwrap_or_else(|_| children_by_parent())
}

/// Reads the kernel's lists of children, one short file per thread.
fn children_by_task() -> io::Result<Vec<Pid>> {
    let mut pids = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let listed = fs::read_to_string(task?.path().join("children"))?;
        pids.extend(listed.split_ascii_whitespace().filter_map(parse_pid));
    }
    Ok(pids)
}

/// Finds all processes whose parent is this one, for kernels without such lists.
fn children_by_parent() -> Vec<Pid> {
    let own_pid = getpid().as_raw_pid().to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = parse_pid(entry.file_name().to_str()?)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // `pid (name) state ppid …`; the name may contain spaces and parentheses.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (parent == own_pid).then_some(pid)
        })
        .collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lists_a_child_by_task_and_by_parent() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let listed = (
            children_by_task().unwrap().contains(&pid),
            children_by_parent().contains(&pid),
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(listed, (true, true));
    }
}
