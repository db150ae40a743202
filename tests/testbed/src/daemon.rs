//! Processes that outlive the program that starts them, and that a later program identifies.
//!
//! A pid alone does not identify a process, because the kernel reuses pids. A record therefore also
//! holds the start time, and signals go through a pidfd that is opened before the comparison, so
//! that no other process can be hit.
//!
//! Every process also has a mark in its environment, which its descendants inherit. It identifies
//! processes without a record after a crash, such as a containerd shim or a process whose record
//! was not written.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Seek, SeekFrom},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

use crate::layout;

/// Environment variable that marks processes of a test bed; its value is the run directory.
const MARK: &str = "KRM_TESTBED_RUN";

/// Time limit for a process to end after SIGTERM, before SIGKILL.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for a process to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The record that distinguishes a process from a later one with the same pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: i32,
    /// Start time in clock ticks since boot.
    start_time: u64,
    boot: String,
}

/// A live process, held by a pidfd so that its pid cannot refer to another process.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    handle: OwnedFd,
}

/// A program that runs in the background, and the record of its process.
#[derive(Debug)]
pub struct Daemon<'a> {
    /// Name of the program and of its record.
    pub name: &'a str,
    /// Run directory: the value of the mark and the directory of the record.
    pub run: &'a Path,
    /// Log file for the program's output, kept across restarts.
    pub log: PathBuf,
}

// === impl Daemon ===

impl Daemon<'_> {
    /// Returns the recorded process if it still runs.
    pub fn process(&self) -> Result<Option<Process>> {
        let record = match fs::read(self.record()) {
            Ok(record) => record,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot read a process record"),
        };
        let Ok(identity) = serde_json::from_slice::<Identity>(&record) else {
            return Ok(None);
        };
        Ok(Process::open(identity.pid)?.filter(|_| Identity::of(identity.pid) == Some(identity)))
    }

    /// Starts the program unless it runs; returns whether it was started.
    pub fn ensure_running(
        &self,
        search_path: &str,
        program: &Path,
        arguments: &[String],
    ) -> Result<bool> {
        if self.process()?.is_some() {
            return Ok(false);
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("cannot open {}", self.log.display()))?;
        // setsid(1) executes the program without a fork, so the child's pid is the program's.
        let child = Command::new("setsid")
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", search_path)
            .env("HOME", self.run)
            .env(MARK, self.run)
            .current_dir(self.run)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let pid = i32::try_from(child.id()).context("the pid is not an i32")?;
        // If the process has already ended, the readiness check reports it with the log.
        if let Some(identity) = Identity::of(pid) {
            layout::write(&self.record(), serde_json::to_vec(&identity)?)?;
        }
        // Reaps a daemon that ends before this program, because a pidfd of a zombie can be opened.
        std::thread::spawn(move || {
            let mut child = child;
            child.wait()
        });
        Ok(true)
    }

    /// Stops the process with SIGTERM, then with SIGKILL.
    pub fn stop(&self) -> Result<()> {
        if let Some(process) = self.process()? {
            process.terminate(STOP_TIMEOUT)?;
        }
        self.remove_record()
    }

    /// Kills the process, like a crash.
    pub fn kill(&self) -> Result<()> {
        if let Some(process) = self.process()? {
            process.kill()?;
        }
        self.remove_record()
    }

    /// Returns the last 2000 bytes of the log, for error output.
    #[must_use]
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }

    fn record(&self) -> PathBuf {
        self.run.join("pids").join(self.name)
    }

    fn remove_record(&self) -> Result<()> {
        match fs::remove_file(self.record()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

// === impl Process ===

impl Process {
    /// Opens the process with this pid; returns `None` if it does not exist.
    pub fn open(pid: i32) -> Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(pid) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(Some(Self { pid, handle })),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error).context("cannot open a pidfd"),
        }
    }

    /// Returns the pid.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns the kernel's name for the program, or `None` if the process has ended.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid())).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// Sends a signal; a process that has ended is not an error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error)
                .with_context(|| format!("cannot send a signal to process {}", self.pid())),
        }
    }

    /// Sends SIGTERM, then SIGKILL if the process still runs after `timeout`.
    pub fn terminate(&self, timeout: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        if self.ended_within(timeout)? {
            return Ok(());
        }
        self.kill()
    }

    /// Kills the process and waits until it has ended.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        if !self.ended_within(KILL_TIMEOUT)? {
            anyhow::bail!("process {} did not end after SIGKILL", self.pid());
        }
        Ok(())
    }

    fn ended_within(&self, limit: Duration) -> Result<bool> {
        let limit = Timespec::try_from(limit)?;
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        loop {
            match poll(&mut ended, Some(&limit)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for a process"),
            }
        }
    }
}

/// Returns every process with the mark of this run directory.
pub fn marked(run: &Path) -> Result<Vec<Process>> {
    let mark = format!("{MARK}={}", run.display()).into_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Opened before the check, so that the checked process is the one that is signalled.
        let Some(process) = Process::open(pid)? else {
            continue;
        };
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark)
        {
            found.push(process);
        }
    }
    Ok(found)
}

// === impl Identity ===

impl Identity {
    /// Returns the identity of a process, or `None` if it does not exist or is a zombie.
    fn of(pid: i32) -> Option<Self> {
        let fields = stat_fields(pid)?;
        if matches!(fields.first()?.as_str(), "Z" | "X") {
            return None;
        }
        Some(Self {
            pid,
            start_time: fields.get(19)?.parse().ok()?,
            boot: boot_id().ok()?,
        })
    }
}

/// Returns whether the process has ended and its parent has not reaped it.
pub fn is_zombie(pid: i32) -> bool {
    stat_fields(pid).is_some_and(|fields| fields.first().is_some_and(|state| state == "Z"))
}

/// Returns the fields of `/proc/PID/stat` from the state on.
///
/// The program's name before it is in parentheses and may contain any character.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = status.get(status.rfind(')')? + 1..)?.split_whitespace();
    Some(fields.map(str::to_owned).collect())
}

/// Returns the id of the current boot of the machine.
pub fn boot_id() -> Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Returns the last 2000 bytes of a file.
fn tail(path: &Path) -> Result<String> {
    const LENGTH: u64 = 2000;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LENGTH)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon<'a>(name: &'a str, run: &'a Path) -> Daemon<'a> {
        fs::create_dir_all(run.join("pids")).unwrap();
        Daemon {
            name,
            run,
            log: run.join("log"),
        }
    }

    fn sleep(daemon: &Daemon<'_>) {
        let path = "/usr/bin:/bin";
        assert!(
            daemon
                .ensure_running(path, Path::new("sleep"), &["600".to_owned()])
                .unwrap()
        );
    }

    #[test]
    fn recognises_a_started_process_and_stops_it() {
        let run = tempfile::tempdir().unwrap();
        let daemon = daemon("sleeper", run.path());
        sleep(&daemon);
        assert!(daemon.process().unwrap().is_some());
        assert!(
            !daemon
                .ensure_running("/bin", Path::new("sleep"), &[])
                .unwrap()
        );
        daemon.stop().unwrap();
        assert!(daemon.process().unwrap().is_none());
        assert!(marked(run.path()).unwrap().is_empty());
    }

    #[test]
    fn ignores_a_record_whose_pid_belongs_to_another_process() {
        let run = tempfile::tempdir().unwrap();
        let daemon = daemon("reused", run.path());
        let own = i32::try_from(std::process::id()).unwrap();
        let mut identity = Identity::of(own).unwrap();
        identity.start_time -= 1;
        fs::write(daemon.record(), serde_json::to_vec(&identity).unwrap()).unwrap();
        assert!(daemon.process().unwrap().is_none());
        daemon.stop().unwrap();
    }

    #[test]
    fn finds_a_process_without_a_record_by_its_mark() {
        let run = tempfile::tempdir().unwrap();
        let daemon = daemon("unrecorded", run.path());
        sleep(&daemon);
        fs::remove_file(daemon.record()).unwrap();
        assert!(daemon.process().unwrap().is_none());
        let found = marked(run.path()).unwrap();
        assert_eq!(found.len(), 1);
        found[0].kill().unwrap();
        assert!(marked(run.path()).unwrap().is_empty());
    }
}
