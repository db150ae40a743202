//! A started process and its evaluation: writes the input, reads the outputs, waits for the end.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Buf, Bytes};
use rustix::io::Errno;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::Sender,
    time::{Instant, timeout},
};

use crate::{
    Exit, Program, StartError, Surroundings,
    exit::Leader,
    log::Log,
    output::{self, Output},
    program::prefer_for_oom,
    scratch::{Scratch, ScratchRoot},
};

/// Time (100 ms) that a pipe may stay open after the process has ended.
///
/// A grandchild may hold the pipe. After this time the process group is killed; after the same time
/// again, reading stops.
const LINGER: Duration = Duration::from_millis(100);

/// Time (10 ms) granted to a process between closing its pipes and its end.
const MOMENT: Duration = Duration::from_millis(10);

/// Run time (50 ms) after which a function counts as long-running.
///
/// Such a function may use much memory, or may have ended and left its pipes to a grandchild. From
/// then on it is preferred by the OOM killer, and its end is watched independently of its pipes.
/// Both cost too much for the many functions that end sooner.
const LONG: Duration = Duration::from_millis(50);

/// Default capacity of a pipe in bytes.
const PIPE_SIZE: usize = 64 << 10;

/// Maximum capacity of a pipe in bytes that an unprivileged process may set.
const MAX_PIPE_SIZE: usize = 1 << 20;

/// Input length in bytes up to which the output is expected to fit into a pipe.
const SHORT: usize = PIPE_SIZE / 4;

/// Time (10 ms) during which outputs are not read; a function that fills its pipe blocks until
/// then.
const HUSH: Duration = Duration::from_millis(10);

/// A process that was started and waits for its input.
pub(crate) struct Process {
    // Fields are dropped in this order: the process ends before its directory is removed.
    leader: Leader,
    stdin: OwnedFd,
    stdout: Output,
    stderr: Output,
    _scratch: Option<Scratch>,
}

/// A process that was started before its input arrived and is watched for early acts.
pub(crate) struct Waiting(Process);

/// An act of a process before its input arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyAct {
    /// The process ended.
    Ended(Exit),
    /// The process wrote something, or closed its standard output and error.
    Wrote,
}

/// A process whose input was written, or as much of it as fits into the pipe.
pub(crate) struct Running {
    // Fields are dropped in this order, as in `Process`.
    leader: Leader,
    unsent: Option<Unsent>,
    stdout: Output,
    stderr: Output,
    /// Expected length of the output in bytes: about the length of the input.
    expected: usize,
    _scratch: Option<Scratch>,
}

struct Unsent {
    stdin: OwnedFd,
    rest: Bytes,
}

/// Limits on the output of a process, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) stdout: usize,
    pub(crate) stderr: usize,
}

pub(crate) struct Ended {
    pub(crate) stdout: Bytes,
    pub(crate) stderr: Bytes,
    pub(crate) exit: Exit,
    /// CPU time, if the process was long-running.
    pub(crate) computed: Option<Duration>,
}

/// The reason why a process did not end by itself.
#[derive(Debug)]
pub(crate) enum Stopped {
    OutputTooLarge,
    DeadlineExceeded { stderr: Bytes },
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn start(
        program: &Program,
        scratches: &ScratchRoot,
    ) -> Result<Self, ProcessStartError> {
        Self::start_with(program, scratches, Output::new)
    }

    fn start_with(
        program: &Program,
        scratches: &ScratchRoot,
        output: fn(OwnedFd) -> io::Result<Output>,
    ) -> Result<Self, ProcessStartError> {
        let scratch = match program.surroundings {
            Surroundings::Confined => scratches.scratch(),
            Surroundings::Inherited => None,
        };
        let directory = match (&scratch, program.surroundings) {
            (Some(scratch), _) => Some(scratch.path()),
            (None, Surroundings::Confined) => Some(Path::new("/")),
            (None, Surroundings::Inherited) => None,
        };
        let started = program.start(directory)?;
        let leader = Leader::new(started.child);
        Ok(Self {
            leader,
            stdin: started.stdin,
            stdout: output(started.stdout)?,
            stderr: output(started.stderr)?,
            _scratch: scratch,
        })
    }

    /// Writes the input, or as much of it as fits into the pipe.
    pub(crate) fn feed(self, input: Bytes) -> Running {
        let expected = input.len();
        if expected > PIPE_SIZE {
            // Larger pipes mean fewer wake-ups. The system refuses if the user's pipe memory is
            // used up.
            widen(&self.stdin, expected);
            widen(&self.stdout, expected);
        }
        Running {
            leader: self.leader,
            unsent: write(self.stdin, input),
            stdout: self.stdout,
            stderr: self.stderr,
            expected,
            _scratch: self._scratch,
        }
    }
}

// === impl Waiting ===

impl Waiting {
    /// Starts a process before its input is available.
    pub(crate) fn start(
        program: &Program,
        scratches: &ScratchRoot,
    ) -> Result<Self, ProcessStartError> {
        let mut process = Process::start_with(program, scratches, Output::watched)?;
        process.leader.watch()?;
        Ok(Self(process))
    }

    /// Converts into a process that can be given its input.
    pub(crate) fn into_process(self) -> io::Result<Process> {
        let process = self.0;
        Ok(Process {
            stdout: process.stdout.unwatched()?,
            stderr: process.stderr.unwatched()?,
            ..process
        })
    }

    /// Waits until the process writes, closes both outputs, or ends.
    ///
    /// The end is watched separately: a child of the process may still hold its pipes open.
    pub(crate) fn poll_acted(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let outputs = [&self.0.stdout, &self.0.stderr].map(|output| output.poll_early(context));
        let is_written = outputs.contains(&Poll::Ready(output::Early::Written));
        if is_written || outputs == [Poll::Ready(output::Early::Closed); 2] {
            return Poll::Ready(());
        }
        self.0.leader.poll_ended(context)
    }

    /// Returns whether the process has acted or ended. Further acts wake no task.
    pub(crate) fn has_acted(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // The end may be too recent for the runtime to have seen it.
        self.poll_acted(&mut context).is_ready() || self.0.leader.has_ended()
    }

    /// Ends a process that has acted, and returns the act.
    pub(crate) async fn dismiss(self) -> EarlyAct {
        let leader = self.0.leader;
        if !leader.has_ended() {
            // The pipes are closed shortly before the process has ended.
            tokio::time::sleep(MOMENT).await;
        }
        match leader.has_ended() {
            true => leader.reap().map_or(EarlyAct::Wrote, EarlyAct::Ended),
            false => EarlyAct::Wrote,
        }
    }
}

// === impl EarlyAct ===

impl EarlyAct {
    /// Returns whether the program caused the act itself; SIGKILL and SIGTERM may come from
    /// outside.
    pub(crate) fn is_own(self) -> bool {
        use rustix::process::Signal;
        let from_outside = [Signal::KILL, Signal::TERM].map(Signal::as_raw);
        !matches!(self, Self::Ended(Exit::Signal(signal)) if from_outside.contains(&signal))
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

// === impl Running ===

impl Running {
    /// Waits for the end of the process. Dropping the future ends the process.
    pub(crate) async fn complete(
        self,
        bounds: Bounds,
        deadline: Instant,
    ) -> Result<Ended, Stopped> {
        // Dropped in reverse order, so the scratch directory goes last.
        let Self {
            _scratch,
            mut leader,
            unsent,
            stdout,
            stderr,
            expected,
        } = self;
        let mut output = Output::buffer(bounds.stdout.min(expected));
        let mut log = Log::new(bounds.stderr);
        let (in_time, is_long) = {
            let is_short = unsent.is_none() && expected <= SHORT;
            let mut fed = pin!(send(unsent));
            let mut drained = pin!(async {
                if is_short {
                    hush(&stdout, &stderr).await?;
                }
                drain(stdout, &mut output, bounds.stdout, stderr, &mut log).await
            });
            let mut late = pin!(tokio::time::sleep_until(deadline));
            let mut long = pin!(tokio::time::sleep(LONG));
            let (mut is_fed, mut is_drained, mut is_long) = (false, false, false);
            let in_time = loop {
                tokio::select! {
                    biased;
                    () = &mut fed, if !is_fed => is_fed = true,
                    done = &mut drained, if !is_drained => {
                        done?;
                        is_drained = true;
                        // Pipes are nearly always closed by the end of the process: nothing more to
                        // wait for.
                        if leader.has_ended() {
                            break true;
                        }
                    }
                    ended = leader.exited(), if is_drained || is_long => {
                        ended?;
                        break true;
                    }
                    () = &mut long, if !is_long => {
                        is_long = true;
                        prefer_for_oom(leader.pid());
                    }
                    () = &mut late => {
                        leader.kill_group();
                        break false;
                    }
                }
            };
            // Everything that the process itself wrote is in the pipes by now. If they are still
            // open, a process that it left behind holds them.
            if !is_drained {
                match timeout(LINGER, &mut drained).await {
                    Ok(done) => done?,
                    Err(_) => {
                        leader.kill_group();
                        if let Ok(done) = timeout(LINGER, &mut drained).await {
                            done?;
                        }
                    }
                }
            }
            (in_time, is_long)
        };
        if !in_time {
            return Err(Stopped::DeadlineExceeded {
                stderr: log.into_bytes(),
            });
        }
        let computed = is_long.then(|| leader.computed()).flatten();
        let exit = leader.reap()?;
        Ok(Ended {
            stdout: Bytes::from(output),
            stderr: log.into_bytes(),
            exit,
            computed,
        })
    }
}

/// Writes as much of the input as fits into the pipe, without checking first whether there is room.
///
/// Most resource lists fit completely. A function may end or close its standard input before it has
/// read everything; this is not an error.
fn write(stdin: OwnedFd, mut input: Bytes) -> Option<Unsent> {
    let written = match rustix::io::write(&stdin, &input) {
        Ok(written) => written,
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(_) => return None,
    };
    input.advance(written);
    input
        .has_remaining()
        .then_some(Unsent { stdin, rest: input })
}

async fn send(unsent: Option<Unsent>) {
    if let Some(Unsent { stdin, rest }) = unsent
        && let Ok(mut stdin) = Sender::from_owned_fd_unchecked(stdin)
    {
        let _ = stdin.write_all(&rest).await;
    }
}

/// Waits until both outputs are closed, at most [`HUSH`].
async fn hush(stdout: &Output, stderr: &Output) -> io::Result<()> {
    let ends = async { tokio::try_join!(stdout.closed(), stderr.closed()) };
    match timeout(HUSH, ends).await {
        Ok(ended) => ended.map(|_| ()),
        Err(_) => Ok(()),
    }
}

async fn drain(
    stdout: Output,
    output: &mut Vec<u8>,
    limit: usize,
    stderr: Output,
    log: &mut Log,
) -> Result<(), Stopped> {
    let output = stdout.drain(output, |output| {
        if output.len() > limit {
            return Err(Stopped::OutputTooLarge);
        }
        Ok(())
    });
    let mut chunk = Vec::new();
    let log = stderr.drain(&mut chunk, |chunk| {
        log.push(chunk);
        chunk.clear();
        Ok(())
    });
    tokio::try_join!(output, log).map(|_| ())
}

fn widen(pipe: &impl AsFd, size: usize) {
    let size = size.clamp(PIPE_SIZE, MAX_PIPE_SIZE).next_power_of_two();
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, size);
}

/// The reason why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessStartError {
    #[error(transparent)]
    Program(#[from] StartError),
    #[error("cannot start a process: {0}")]
    System(#[from] io::Error),
}
