//! A process that works on its input: writes the rest of the input, reads the outputs, waits for
//! the end.

use std::{io, pin::pin, time::Duration};

use bytes::Bytes;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::Sender,
    time::{Instant, timeout},
};

use super::{PIPE_SIZE, UnsentInput};
use crate::{
    Exit, Limits,
    exit::Leader,
    log::BoundedLog,
    output::{OutputPipe, buffer_for},
    program::prefer_for_oom_killer,
    scratch::ScratchDirectory,
};

/// Time (100 ms) that a pipe may stay open after the process has ended.
///
/// A grandchild may hold the pipe. After this time the process group is killed; after the same time
/// again, reading stops.
const OPEN_PIPE_TIMEOUT: Duration = Duration::from_millis(100);

/// Run time (50 ms) after which a function is long-running.
///
/// Such a function may use much memory, or may have ended and left its pipes to a grandchild. From
/// then on it is preferred by the OOM killer, and its end is watched independently of its pipes.
/// Both cost too much for the many functions that end sooner.
const LONG_RUNNING_THRESHOLD: Duration = Duration::from_millis(50);

/// Length of an input (16 KiB) up to which the output is expected to fit into a pipe.
const MAX_SHORT_INPUT: usize = PIPE_SIZE / 4;

/// Time (10 ms) during which the outputs of a short input are not read; a function that fills its
/// pipe blocks until then.
const READ_DELAY: Duration = Duration::from_millis(10);

/// A process whose input was written, or as much of it as fits into the pipe.
pub(crate) struct RunningProcess {
    // Fields are dropped in this order, as in `Process`.
    pub(super) leader: Leader,
    pub(super) unsent: Option<UnsentInput>,
    pub(super) stdout: OutputPipe,
    pub(super) stderr: OutputPipe,
    /// Length of the input in bytes; the output is expected to be about as long.
    pub(super) input_length: usize,
    pub(super) _scratch: Option<ScratchDirectory>,
}

/// The outputs and the exit of a process that ended by itself.
pub(crate) struct EndedProcess {
    pub(crate) stdout: Bytes,
    pub(crate) stderr: Bytes,
    pub(crate) exit: Exit,
    /// CPU time, if the process was long-running.
    pub(crate) cpu_time: Option<Duration>,
}

/// The reason why a process was stopped before it ended by itself.
#[derive(Debug)]
pub(crate) enum StopReason {
    OutputTooLarge,
    DeadlineExceeded { stderr: Bytes },
    Io(io::Error),
}

// === impl RunningProcess ===

impl RunningProcess {
    /// Waits for the end of the process. Dropping the future ends the process.
    pub(crate) async fn complete(
        self,
        limits: Limits,
        deadline: Instant,
    ) -> Result<EndedProcess, StopReason> {
        // Dropped in reverse order, so the scratch directory is removed last.
        let Self {
            _scratch,
            mut leader,
            unsent,
            stdout,
            stderr,
            input_length,
        } = self;
        let mut output = buffer_for(limits.stdout.min(input_length));
        let mut log = BoundedLog::new(limits.stderr);
        let (is_in_time, is_long_running) = {
            let is_short = unsent.is_none() && input_length <= MAX_SHORT_INPUT;
            let mut writing = pin!(write_rest(unsent));
            let mut reading = pin!(async {
                if is_short {
                    delay_reading(&stdout, &stderr).await?;
                }
                read_outputs(stdout, &mut output, limits.stdout, stderr, &mut log).await
            });
            let mut deadline = pin!(tokio::time::sleep_until(deadline));
            let mut long_running = pin!(tokio::time::sleep(LONG_RUNNING_THRESHOLD));
            let (mut is_written, mut is_read, mut is_long_running) = (false, false, false);
            let is_in_time = loop {
                tokio::select! {
                    biased;
                    () = &mut writing, if !is_written => is_written = true,
                    result = &mut reading, if !is_read => {
                        result?;
                        is_read = true;
                        // Pipes are nearly always closed by the end of the process: nothing more to
                        // wait for.
                        if leader.has_ended() {
                            break true;
                        }
                    }
                    result = leader.wait_until_ended(), if is_read || is_long_running => {
                        result?;
                        break true;
                    }
                    () = &mut long_running, if !is_long_running => {
                        is_long_running = true;
                        prefer_for_oom_killer(leader.pid());
                    }
                    () = &mut deadline => {
                        leader.kill_group();
                        break false;
                    }
                }
            };
            // Everything that the process itself wrote is in the pipes by now. If they are still
            // open, a process that it left behind holds them.
            if !is_read {
                match timeout(OPEN_PIPE_TIMEOUT, &mut reading).await {
                    Ok(result) => result?,
                    Err(_) => {
                        leader.kill_group();
                        if let Ok(result) = timeout(OPEN_PIPE_TIMEOUT, &mut reading).await {
                            result?;
                        }
                    }
                }
            }
            (is_in_time, is_long_running)
        };
        if !is_in_time {
            return Err(StopReason::DeadlineExceeded {
                stderr: log.into_bytes(),
            });
        }
        let cpu_time = is_long_running.then(|| leader.cpu_time()).flatten();
        let exit = leader.reap()?;
        Ok(EndedProcess {
            stdout: Bytes::from(output),
            stderr: log.into_bytes(),
            exit,
            cpu_time,
        })
    }
}

// === impl StopReason ===

impl From<io::Error> for StopReason {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

async fn write_rest(unsent: Option<UnsentInput>) {
    if let Some(UnsentInput { stdin, rest }) = unsent
        && let Ok(mut stdin) = Sender::from_owned_fd_unchecked(stdin)
    {
        let _ = stdin.write_all(&rest).await;
    }
}

/// Waits until both outputs are closed, at most [`READ_DELAY`].
async fn delay_reading(stdout: &OutputPipe, stderr: &OutputPipe) -> io::Result<()> {
    let closed = async { tokio::try_join!(stdout.wait_until_closed(), stderr.wait_until_closed()) };
    match timeout(READ_DELAY, closed).await {
        Ok(result) => result.map(|_| ()),
        Err(_) => Ok(()),
    }
}

/// Reads both outputs to their ends; standard output at most to `limit` bytes.
async fn read_outputs(
    stdout: OutputPipe,
    output: &mut Vec<u8>,
    limit: usize,
    stderr: OutputPipe,
    log: &mut BoundedLog,
) -> Result<(), StopReason> {
    let read_stdout = stdout.read_to_end(output, |output| {
        if output.len() > limit {
            return Err(StopReason::OutputTooLarge);
        }
        Ok(())
    });
    let mut chunk = Vec::new();
    let read_stderr = stderr.read_to_end(&mut chunk, |chunk| {
        log.push(chunk);
        chunk.clear();
        Ok(())
    });
    tokio::try_join!(read_stdout, read_stderr).map(|_| ())
}
