//! Waits for the end of a process, kills it with its process group, and reaps it.

use std::{
    future::poll_fn,
    io,
    process::{Child, ExitStatus},
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::{
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{Signal as SignalStream, SignalKind, signal},
};

use crate::{orphans, output::register};

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process exited with this code.
    Code(i32),
    /// The process was killed by this signal.
    Signal(i32),
}

/// The leader of a function's process group. Dropping it kills the group and reaps the leader.
pub(crate) struct Leader {
    pid: Pid,
    /// `None` once the leader is reaped.
    unreaped: Option<Unreaped>,
}

/// A leader that is not reaped, and the watch of its end.
struct Unreaped {
    child: Child,
    /// `None` until the first wait: most ends are detected by the pipes they close.
    watch: Option<ExitWatch>,
}

/// A notification of the leader's end that does not reap it.
///
/// The leader's pid, and so the ID of its group, must stay taken until the group is killed.
enum ExitWatch {
    Pidfd(AsyncFd<OwnedFd>),
    /// Used on kernels and in sandboxes without pidfd.
    Sigchld(SignalStream),
}

// === impl Exit ===

impl Exit {
    /// Returns whether the process exited with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    fn from_status(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(-1),
        }
    }
}

impl std::fmt::Display for Exit {
    /// Formats the exit as Go does: `exit status 1`, `signal: killed`.
    ///
    /// Package authors are used to this format.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal: {name}"),
                None => write!(f, "signal: signal {signal}"),
            },
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match Signal::from_named_raw(signal)? {
        Signal::HUP => "hangup",
        Signal::INT => "interrupt",
        Signal::QUIT => "quit",
        Signal::ILL => "illegal instruction",
        Signal::TRAP => "trace/breakpoint trap",
        Signal::ABORT => "aborted",
        Signal::BUS => "bus error",
        Signal::FPE => "floating point exception",
        Signal::KILL => "killed",
        Signal::SEGV => "segmentation fault",
        Signal::PIPE => "broken pipe",
        Signal::ALARM => "alarm clock",
        Signal::TERM => "terminated",
        Signal::XCPU => "CPU time limit exceeded",
        Signal::XFSZ => "file size limit exceeded",
        _ => return None,
    })
}

// === impl Leader ===

impl Leader {
    /// Takes ownership of a child that was started as the leader of its own process group.
    pub(crate) fn new(child: Child) -> Self {
        Self {
            pid: Pid::from_child(&child),
            unreaped: Some(Unreaped { child, watch: None }),
        }
    }

    /// Returns the pid of the leader, which is also the ID of its group.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the leader has ended, without reaping it.
    pub(crate) async fn wait_until_ended(&mut self) -> io::Result<()> {
        match &mut self.unreaped {
            Some(unreaped) => unreaped.wait_until_ended(self.pid).await,
            None => Ok(()),
        }
    }

    /// Prepares [`Self::poll_ended`]. Needs a tokio runtime.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        match &mut self.unreaped {
            Some(unreaped) => unreaped.watch(self.pid).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Waits until the leader has ended, without reaping it; pending forever without
    /// [`Self::watch`].
    pub(crate) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self.unreaped.as_mut().map(|unreaped| &mut unreaped.watch) {
            None => Poll::Ready(()),
            Some(None) => Poll::Pending,
            Some(Some(watch)) => match ready!(watch.poll_ended(self.pid, context)) {
                Ok(()) => Poll::Ready(()),
                // An error means that the runtime is shutting down.
                Err(_) => Poll::Pending,
            },
        }
    }

    /// Returns whether the leader has ended.
    pub(crate) fn has_ended(&self) -> bool {
        has_ended(self.pid)
    }

    /// Returns the CPU time of the leader and of the children it waited for, until it is reaped.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let pid = self.pid.as_raw_nonzero();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        cpu_time(&stat, rustix::param::clock_ticks_per_second())
    }

    /// Kills every process of the group.
    pub(crate) fn kill_group(&self) {
        kill_group(self.pid);
    }

    /// Kills the rest of the group, then reaps the leader, which must have ended.
    pub(crate) fn reap(mut self) -> io::Result<Exit> {
        match self.unreaped.take() {
            Some(unreaped) => unreaped.reap(self.pid),
            None => Err(io::Error::other("the process is already reaped")),
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let Some(mut unreaped) = self.unreaped.take() else {
            return;
        };
        let pid = self.pid;
        kill_group(pid);
        // The kill takes effect a moment later; the drop must not block until then.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if !has_ended(pid) => {
                runtime.spawn(async move {
                    let _ = unreaped.wait_until_ended(pid).await;
                    let _ = unreaped.reap(pid);
                });
            }
            _ => {
                let _ = unreaped.reap(pid);
            }
        }
    }
}

// === impl Unreaped ===

impl Unreaped {
    fn watch(&mut self, pid: Pid) -> io::Result<&mut ExitWatch> {
        let watch = match self.watch.take() {
            Some(watch) => watch,
            None => ExitWatch::new(pid)?,
        };
        Ok(self.watch.insert(watch))
    }

    async fn wait_until_ended(&mut self, pid: Pid) -> io::Result<()> {
        self.watch(pid)?.wait_until_ended(pid).await
    }

    fn reap(mut self, pid: Pid) -> io::Result<Exit> {
        kill_group(pid);
        // The watch is dropped first: its pidfd refers to this process, whose pid is free after the
        // wait.
        drop(self.watch);
        let exit = self.child.wait().map(Exit::from_status);
        orphans::remove_leader(pid);
        exit
    }
}

// === impl ExitWatch ===

impl ExitWatch {
    fn new(pid: Pid) -> io::Result<Self> {
        match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(pidfd) => register(pidfd, Interest::READABLE).map(Self::Pidfd),
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM | rustix::io::Errno::INVAL) => {
                signal(SignalKind::child()).map(Self::Sigchld)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn wait_until_ended(&mut self, pid: Pid) -> io::Result<()> {
        poll_fn(|context| self.poll_ended(pid, context)).await
    }

    fn poll_ended(&mut self, pid: Pid, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Pidfd(pidfd) => pidfd
                .poll_read_ready(context)
                .map_ok(|mut ready| ready.retain_ready()),
            Self::Sigchld(signals) => {
                while !has_ended(pid) {
                    if ready!(signals.poll_recv(context)).is_none() {
                        return Poll::Ready(Err(io::Error::other("the signal stream ended")));
                    }
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// Returns whether a process has ended, without reaping it: its pid stays taken by the zombie.
fn has_ended(pid: Pid) -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), peek), Ok(None))
}

/// Sums the four CPU times in a line of `/proc/PID/stat`: user and system time, of the process and
/// of the children it waited for.
fn cpu_time(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    // The second field is the name in parentheses, which may contain any character.
    let (_, fields) = stat.rsplit_once(") ")?;
    let times = fields.split(' ').skip(11).take(4);
    let ticks = times.map(str::parse::<u64>).sum::<Result<u64, _>>().ok()?;
    Some(Duration::from_millis(
        ticks * 1000 / ticks_per_second.max(1),
    ))
}

/// Kills the process group of a leader that is not reaped.
///
/// Until it is reaped its pid is taken, by the leader or its zombie, so the group cannot be that of
/// another process.
fn kill_group(leader: Pid) {
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn reads_cpu_times_after_a_name_with_parentheses() {
        let stat = "71 (a ) b (c) 1) Z 1 71 71 0 -1 4228108 9 0 0 0 3 2 1 4 20 0 1 0 8137 0\n";
        assert_eq!(cpu_time(stat, 100), Some(Duration::from_millis(100)));
        assert_eq!(cpu_time("71 (sh", 100), None);
    }

    #[test]
    fn formats_exits_as_go_does() {
        assert_eq!(Exit::Code(3).to_string(), "exit status 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal: killed");
        assert_eq!(Exit::Signal(11).to_string(), "signal: segmentation fault");
        assert_eq!(Exit::Signal(40).to_string(), "signal: signal 40");
    }

    #[tokio::test]
    async fn detects_the_end_of_a_process_without_pidfd() {
        use std::os::unix::process::CommandExt;
        let signals = signal(SignalKind::child()).unwrap();
        let child = Command::new("/bin/sh")
            .args(["-c", "exit 4"])
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let mut watch = ExitWatch::Sigchld(signals);
        watch.wait_until_ended(pid).await.unwrap();
        let watch = Some(watch);
        let unreaped = Unreaped { child, watch };
        assert_eq!(unreaped.reap(pid).unwrap(), Exit::Code(4));
    }
}
