//! Starts the process of a program and writes its input.

mod running;
mod standby;

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use bytes::{Buf, Bytes};
use rustix::io::Errno;

use running::RunningProcess;

use crate::{
    Confinement, Program, StartError,
    exit::Leader,
    output::OutputPipe,
    scratch::{ScratchDirectory, ScratchRoot},
};

pub(crate) use running::StopReason;
pub(crate) use standby::{EarlyAct, StandbyProcess};

/// Default capacity of a pipe (64 KiB).
const PIPE_SIZE: usize = 64 << 10;

/// Maximum capacity of a pipe (1 MiB) that an unprivileged process may set.
const MAX_PIPE_SIZE: usize = 1 << 20;

/// A process that was started and waits for its input.
pub(crate) struct Process {
    // Fields are dropped in this order: the process ends before its directory is removed.
    leader: Leader,
    stdin: OwnedFd,
    stdout: OutputPipe,
    stderr: OutputPipe,
    _scratch: Option<ScratchDirectory>,
}

/// The part of an input that did not fit into the pipe at once.
struct UnsentInput {
    stdin: OwnedFd,
    rest: Bytes,
}

/// The reason why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessStartError {
    #[error(transparent)]
    Program(#[from] StartError),
    #[error("cannot start a process: {0}")]
    System(#[from] io::Error),
}

// === impl Process ===

impl Process {
    /// Starts a process of a program, in a scratch directory if the program is confined.
    pub(crate) fn start(
        program: &Program,
        scratch_root: &ScratchRoot,
    ) -> Result<Self, ProcessStartError> {
        Self::start_with(program, scratch_root, OutputPipe::new)
    }

    fn start_with(
        program: &Program,
        scratch_root: &ScratchRoot,
        register_output: fn(OwnedFd) -> io::Result<OutputPipe>,
    ) -> Result<Self, ProcessStartError> {
        let scratch = match program.confinement {
            Confinement::Confined => scratch_root.take_directory(),
            Confinement::Unconfined => None,
        };
        let directory = match (&scratch, program.confinement) {
            (Some(scratch), _) => Some(scratch.path()),
            (None, Confinement::Confined) => Some(Path::new("/")),
            (None, Confinement::Unconfined) => None,
        };
        let spawned = program.start(directory)?;
        let leader = Leader::new(spawned.child);
        Ok(Self {
            leader,
            stdin: spawned.stdin,
            stdout: register_output(spawned.stdout)?,
            stderr: register_output(spawned.stderr)?,
            _scratch: scratch,
        })
    }

    /// Writes the input, or as much of it as fits into the pipe.
    pub(crate) fn write_input(self, input: Bytes) -> RunningProcess {
        let input_length = input.len();
        if input_length > PIPE_SIZE {
            // Larger pipes mean fewer wake-ups. The system refuses if the user's pipe memory is
            // used up.
            enlarge_pipe(&self.stdin, input_length);
            enlarge_pipe(&self.stdout, input_length);
        }
        RunningProcess {
            leader: self.leader,
            unsent: write_at_once(self.stdin, input),
            stdout: self.stdout,
            stderr: self.stderr,
            input_length,
            _scratch: self._scratch,
        }
    }
}

/// Writes as much of the input as fits into the pipe, without checking first whether there is room.
///
/// Most resource lists fit completely. A function may end or close its standard input before it has
/// read everything; this is not an error.
fn write_at_once(stdin: OwnedFd, mut input: Bytes) -> Option<UnsentInput> {
    let written = match rustix::io::write(&stdin, &input) {
        Ok(written) => written,
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(_) => return None,
    };
    input.advance(written);
    input
        .has_remaining()
        .then_some(UnsentInput { stdin, rest: input })
}

fn enlarge_pipe(pipe: &impl AsFd, size: usize) {
    let size = size.clamp(PIPE_SIZE, MAX_PIPE_SIZE).next_power_of_two();
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, size);
}
