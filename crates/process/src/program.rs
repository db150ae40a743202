//! Programs, and the start of their processes.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use rustix::{
    fs::{Access, OFlags, access, fcntl_setfl},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Resource, Rlimit, prlimit},
};

use crate::orphans;

/// A function's program with its arguments and environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// Path of the executable. Always contains a slash: nothing is looked up in a `PATH`.
    pub path: PathBuf,
    /// Command-line arguments.
    pub args: Vec<OsString>,
    /// The complete environment, shared among many programs.
    pub env: Arc<[(OsString, OsString)]>,
    /// Whether processes get a scratch directory and resource limits.
    pub confinement: Confinement,
    /// Whether processes may be started before their input arrives.
    ///
    /// True unless the function acts before it has read its input.
    pub standby: bool,
}

/// Whether a function's processes get a scratch directory and resource limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confinement {
    /// The function runs beside the runner: with an empty scratch directory as working directory,
    /// `HOME` and `TMPDIR`, and with resource limits.
    Confined,
    /// The function runs in its own image, with the directories and limits of that image.
    Unconfined,
}

/// A started process and the runner's ends of its pipes, all non-blocking.
pub(crate) struct SpawnedChild {
    pub(crate) child: Child,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The failure to start a program, worded as in Go, which package authors are used to.
#[derive(Debug, thiserror::Error)]
#[error("fork/exec {}: {}", path.display(), go_message(source))]
pub struct StartError {
    path: PathBuf,
    explanation: &'static str,
    #[source]
    source: io::Error,
}

/// Resource limits of a confined function: no core dumps, 4096 open files, 1 GiB per file.
const RESOURCE_LIMITS: [(Resource, u64); 3] = [
    (Resource::Core, 0),
    (Resource::Nofile, 4096),
    (Resource::Fsize, 1 << 30),
];

// === impl Program ===

impl Program {
    /// Creates a confined program with an empty environment and no arguments.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Arc::default(),
            confinement: Confinement::Confined,
            standby: true,
        }
    }

    /// Returns the file name, which metrics use as the program's name.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Starts a process as the leader of its own group.
    ///
    /// Nothing here may need code between fork and exec: the standard library then uses
    /// `posix_spawn`, which does not copy the runner's page tables. Limits are therefore set from
    /// outside.
    pub(crate) fn start(&self, directory: Option<&Path>) -> Result<SpawnedChild, StartError> {
        self.spawn(directory)
            .map_err(|source| StartError::new(&self.path, source))
    }

    fn spawn(&self, directory: Option<&Path>) -> io::Result<SpawnedChild> {
        // The pipes are not created by `Command`, which would take two more calls for each of them
        // to make them non-blocking.
        let (child_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        for pipe in [&stdin, &stdout, &stderr] {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        let mut command = Command::new(&self.path);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::from(child_stdin))
            .stdout(Stdio::from(child_stdout))
            .stderr(Stdio::from(child_stderr))
            .process_group(0);
        if let Some(directory) = directory {
            command
                .current_dir(directory)
                .env("HOME", directory)
                .env("TMPDIR", directory);
        }
        let child = orphans::start_leader(|| command.spawn(), Pid::from_child)?;
        if self.confinement == Confinement::Confined {
            set_resource_limits(Pid::from_child(&child));
        }
        Ok(SpawnedChild {
            child,
            stdin,
            stdout,
            stderr,
        })
    }
}

// === impl StartError ===

impl StartError {
    /// Checks whether a file can be started, without starting it.
    ///
    /// # Errors
    /// If the file is missing, or this user may not execute it.
    pub fn check_executable(path: &Path) -> Result<(), Self> {
        let errno = match access(path, Access::EXEC_OK) {
            Ok(()) if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) => Errno::ACCESS,
            Ok(()) => return Ok(()),
            Err(errno) => errno,
        };
        Err(Self::new(path, errno.into()))
    }

    /// Replaces the path in the message by the one that the caller used.
    #[must_use]
    pub fn with_path(mut self, path: PathBuf) -> Self {
        self.path = path;
        self
    }

    /// Returns the cause in plain words, with a remedy where one is known.
    #[must_use]
    pub fn explanation(&self) -> &str {
        self.explanation
    }

    fn new(path: &Path, source: io::Error) -> Self {
        let explanation = match (source.kind(), fs::metadata(path)) {
            (io::ErrorKind::NotFound, Err(_)) => "no such file",
            (io::ErrorKind::NotFound, Ok(_)) => {
                "its interpreter (the #! line) or dynamic loader does not exist"
            }
            (_, Ok(metadata)) if metadata.is_dir() => "it is a directory",
            (io::ErrorKind::PermissionDenied, Ok(metadata))
                if metadata.permissions().mode() & 0o111 == 0 =>
            {
                "it is not executable (chmod +x)"
            }
            (io::ErrorKind::PermissionDenied, _) => "permission denied",
            _ => match source.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOEXEC) => {
                    "it is neither a program for this machine nor a script with a #! line"
                }
                Some(Errno::TXTBSY) => "it is open for writing",
                Some(Errno::AGAIN) => "the process limit is reached",
                Some(Errno::NOMEM) => "out of memory",
                Some(Errno::MFILE | Errno::NFILE) => "too many open files",
                _ => "the system could not start it",
            },
        };
        Self {
            path: path.to_owned(),
            explanation,
            source,
        }
    }
}

/// Returns the message of a system error as Go prints it.
fn go_message(error: &io::Error) -> String {
    let text = error.to_string();
    // The message ends with the error number in parentheses.
    let text = text.split('(').next().unwrap_or_default();
    let mut letters = text.trim_end().chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Sets the resource limits of a process.
///
/// Errors are ignored: the process may have ended already, or the system may refuse the limits,
/// and neither harms the evaluation.
fn set_resource_limits(pid: Pid) {
    for (resource, maximum) in RESOURCE_LIMITS {
        let limit = Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        };
        let _ = prlimit(Some(pid), resource, limit);
    }
}

/// Makes the OOM killer select the function before its server.
pub(crate) fn prefer_for_oom_killer(pid: Pid) {
    let _ = fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_pid()), "1000");
}
