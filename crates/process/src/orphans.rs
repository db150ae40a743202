//! Processes that functions leave behind.
//!
//! A function's process group dies with its evaluation. What left the group (by `setsid`, say)
//! becomes an orphan and is handed to us by the kernel: always if we are PID 1 of a pod, and as a
//! *subreaper* otherwise. A sweep ends and reaps such orphans.
//!
//! Told apart by process group: a function's processes are in the group of a leader of ours or in
//! one of their own making; children in our own group were started by other parts of the program
//! (a credential helper, say) and are none of our business.

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

/// Long enough that a busy server sweeps rarely, short enough that nothing piles up.
const SWEEP_DELAY: Duration = Duration::from_secs(1);

/// For orphans that come from elsewhere: whoever looks around in a pod leaves some too.
const IDLE_SWEEP: Duration = Duration::from_secs(30);

/// Held for reading while a leader is started and noted down, for writing while a sweep looks for
/// children that are not noted down.
static STARTING: RwLock<()> = RwLock::new(());

/// The leaders that are not reaped yet.
static LEADERS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// Told whenever a leader was reaped: what it left behind is ours from then on.
static REAPED: Notify = Notify::const_new();

/// Sweeps after functions have ended. Ends when dropped.
#[derive(Debug)]
pub struct Orphans(JoinHandle<()>);

/// Makes orphaned descendants our children, as they are PID 1's.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(io::Error::from)
}

/// Starts a leader and notes it down, so that no sweep takes it for an orphan.
pub(crate) fn starting<T>(
    start: impl FnOnce() -> io::Result<T>,
    pid: impl FnOnce(&T) -> Pid,
) -> io::Result<T> {
    let _gate = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let started = start()?;
    leaders()
        .get_or_insert_default()
        .insert(pid(&started).as_raw_pid());
    Ok(started)
}

/// Forgets a leader that was reaped.
pub(crate) fn forget(leader: Pid) {
    if let Some(leaders) = leaders().as_mut() {
        leaders.remove(&leader.as_raw_pid());
    }
    REAPED.notify_one();
}

/// Kills every function at once.
pub(crate) fn kill_all() {
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

// === impl Orphans ===

impl Orphans {
    /// Starts sweeping. Needs a tokio runtime.
    ///
    /// SIGCHLD would tell of every end at once, and interrupt a thread for each.
    #[must_use]
    pub fn watch() -> Self {
        Self(tokio::spawn(async {
            loop {
                let _ = timeout(IDLE_SWEEP, REAPED.notified()).await;
                sleep(SWEEP_DELAY).await;
                // What was killed is reaped the next time, and its own children are ours by then.
                while sweep() {
                    sleep(SWEEP_DELAY).await;
                }
            }
        }))
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reaps dead orphans and kills living ones whose function is gone. True if there were any: each
/// may have left orphans in turn.
fn sweep() -> bool {
    let mut found = false;
    let _gate = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let leaders = leaders().clone().unwrap_or_default();
    let own_group = rustix::process::getpgrp();
    for pid in children() {
        if leaders.contains(&pid.as_raw_pid()) {
            continue;
        }
        match getpgid(Some(pid)) {
            Ok(group) if group == own_group => continue,
            // Its function still runs: the group's end is its end.
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

fn children() -> Vec<Pid> {
    children_by_task().unwrap_or_else(|_| children_by_parent())
}

/// The kernel's own list, a short read a thread.
fn children_by_task() -> io::Result<Vec<Pid>> {
    let mut pids = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let listed = fs::read_to_string(task?.path().join("children"))?;
        pids.extend(listed.split_ascii_whitespace().filter_map(parse_pid));
    }
    Ok(pids)
}

/// For kernels that keep no such list: every process whose parent we are.
fn children_by_parent() -> Vec<Pid> {
    let own = getpid().as_raw_pid().to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = parse_pid(entry.file_name().to_str()?)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // `pid (name) state ppid …`; the name may hold spaces and brackets.
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (parent == own).then_some(pid)
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
    fn both_ways_of_listing_children_agree() {
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
