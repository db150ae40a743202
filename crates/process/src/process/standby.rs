//! A process that was started before its input arrived, and its acts until then.

use std::{
    io,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{Process, ProcessStartError};
use crate::{
    Exit, Program,
    output::{OutputPipe, PipeActivity},
    scratch::ScratchRoot,
};

/// Time (10 ms) granted to a process between closing its pipes and its end.
const EXIT_GRACE_PERIOD: Duration = Duration::from_millis(10);

/// A process that was started before its input arrived and is watched for early acts.
pub(crate) struct StandbyProcess(Process);

/// An act of a process before its input arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyAct {
    /// The process ended.
    Ended(Exit),
    /// The process wrote something, or closed its standard output and error.
    Wrote,
}

// === impl StandbyProcess ===

impl StandbyProcess {
    /// Starts a process before its input is available.
    pub(crate) fn start(
        program: &Program,
        scratch_root: &ScratchRoot,
    ) -> Result<Self, ProcessStartError> {
        let mut process = Process::start_with(program, scratch_root, OutputPipe::watched)?;
        process.leader.watch()?;
        Ok(Self(process))
    }

    /// Converts into a process whose input can be written.
    pub(crate) fn into_process(self) -> io::Result<Process> {
        let process = self.0;
        Ok(Process {
            stdout: process.stdout.into_unwatched()?,
            stderr: process.stderr.into_unwatched()?,
            ..process
        })
    }

    /// Waits until the process writes, closes both outputs, or ends.
    ///
    /// The end is watched separately: a child of the process may still hold its pipes open.
    pub(crate) fn poll_acted(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let outputs = [&self.0.stdout, &self.0.stderr].map(|output| output.poll_activity(context));
        let is_written = outputs.contains(&Poll::Ready(PipeActivity::Written));
        if is_written || outputs == [Poll::Ready(PipeActivity::Closed); 2] {
            return Poll::Ready(());
        }
        self.0.leader.poll_ended(context)
    }

    /// Returns whether the process has acted or ended. Further acts wake no task.
    pub(crate) fn has_acted(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // The end may be too recent for the runtime to have received the event.
        self.poll_acted(&mut context).is_ready() || self.0.leader.has_ended()
    }

    /// Ends a process that has acted, and returns the act.
    pub(crate) async fn dismiss(self) -> EarlyAct {
        let leader = self.0.leader;
        if !leader.has_ended() {
            // The pipes are closed shortly before the process has ended.
            tokio::time::sleep(EXIT_GRACE_PERIOD).await;
        }
        match leader.has_ended() {
            true => leader.reap().map_or(EarlyAct::Wrote, EarlyAct::Ended),
            false => EarlyAct::Wrote,
        }
    }
}

// === impl EarlyAct ===

impl EarlyAct {
    /// Returns whether the act may have an outside cause: SIGKILL or SIGTERM from another process.
    pub(crate) fn may_be_external(self) -> bool {
        use rustix::process::Signal;
        let external_signals = [Signal::KILL, Signal::TERM].map(Signal::as_raw);
        matches!(self, Self::Ended(Exit::Signal(signal)) if external_signals.contains(&signal))
    }
}

impl std::fmt::Display for EarlyAct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended(exit) => write!(f, "ended ({exit}) before its input arrived"),
            Self::Wrote => f.write_str("wrote output before its input arrived"),
        }
    }
}
