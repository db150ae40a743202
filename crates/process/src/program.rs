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
    /// The surroundings in which processes run.
    pub surroundings: Surroundings,
    /// Whether processes may be started before their input arrives.
    ///
    /// True unless the function acts before it has read its input.
    pub standby: bool,
}

/// The place where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surroundings {
    /// The function runs beside the runner: with an empty scratch directory as working directory,
    /// `HOME` and `TMPDIR`, and with resource limits.
    Confined,
    /// The function runs in its own image, with everything as the image defines it.
    Inherited,
}

/// A started process and the runner's ends of its pipes, all non-blocking.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The failure to start a program, worded as in Go, which package authors are used to.
#[derive(Debug, thiserror::Error)]
#[error("fork/exec {}: {}", path.display(), in_go(source))]
pub struct StartError {
    path: PathBuf,
    why: &'static str,
    #[source]
    source: io::Error,
}

/// Resource limits of a confined function: no core dumps, 4096 open files, 1 GiB per file.
const LIMITS: [(Resource, u64); 3] = [
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
            surroundings: Surroundings::Confined,
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
    pub(crate) fn start(&self, directory: Option<&Path>) -> Result<Started, StartError> {
        self.spawn(directory)
            .map_err(|source| StartError::new(&self.path, source))
    }

    fn spawn(&self, directory: Option<&Path>) -> io::Result<Started> {
        // Created here and not by `Command`: making its ends non-blocking takes two more calls
        // each.
        let (their_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        for ours in [&stdin, &stdout, &stderr] {
            fcntl_setfl(ours, OFlags::NONBLOCK)?;
        }
        let mut command = Command::new(&self.path);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::from(their_stdin))
            .stdout(Stdio::from(their_stdout))
            .stderr(Stdio::from(their_stderr))
            .process_group(0);
        if let Some(directory) = directory {
            command
                .current_dir(directory)
                .env("HOME", directory)
                .env("TMPDIR", directory);
        }
        let child = orphans::starting(|| command.spawn(), Pid::from_child)?;
        if self.surroundings == Surroundings::Confined {
            restrict(Pid::from_child(&child));
        }
        Ok(Started {
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
    pub fn foresee(path: &Path) -> Result<(), Self> {
        let refused = match access(path, Access::EXEC_OK) {
            Ok(()) if fs::metadata(path).is_ok_and(|found| found.is_dir()) => Errno::ACCESS,
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        Err(Self::new(path, refused.into()))
    }

    /// Replaces the path in the message by the one that the caller used.
    #[must_use]
    pub fn named(mut self, path: PathBuf) -> Self {
        self.path = path;
        self
    }

    /// Returns the cause in plain words, with a remedy where one is known.
    #[must_use]
    pub fn explanation(&self) -> &str {
        self.why
    }

    fn new(path: &Path, source: io::Error) -> Self {
        let why = match (source.kind(), fs::metadata(path)) {
            (io::ErrorKind::NotFound, Err(_)) => "no such file",
            (io::ErrorKind::NotFound, Ok(_)) => {
                "its interpreter (the #! line) or dynamic loader does not exist"
            }
            (_, Ok(found)) if found.is_dir() => "it is a directory",
            (io::ErrorKind::PermissionDenied, Ok(found))
                if found.permissions().mode() & 0o111 == 0 =>
            {
                "it is not executable (chmod +x)"
            }
            (io::ErrorKind::PermissionDenied, _) => "permission denied",
            _ => match source.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOEXEC) => {
                    "it is neither a program for this machine nor a script with a #! line"
                }
                Some(Errno::TXTBSY) => "it is being written",
                Some(Errno::AGAIN) => "the process limit is reached",
                Some(Errno::NOMEM) => "out of memory",
                Some(Errno::MFILE | Errno::NFILE) => "too many open files",
                _ => "the system refused it",
            },
        };
        Self {
            path: path.to_owned(),
            why,
            source,
        }
    }
}

/// Returns the system's message as Go prints it.
fn in_go(error: &io::Error) -> String {
    let text = error.to_string();
    // The message ends with the error number in parentheses.
    let text = text.split('(').next().unwrap_or_default();
    let mut letters = text.trim_end().chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Sets the resource limits of a process.
///
/// Errors are ignored: the process may have ended already, or the system may refuse, and neither
/// harms the evaluation.
fn restrict(pid: Pid) {
    for (resource, maximum) in LIMITS {
        let limit = Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        };
        let _ = prlimit(Some(pid), resource, limit);
    }
}

/// Makes the OOM killer end the function before its server.
pub(crate) fn prefer_for_oom(pid: Pid) {
    let _ = fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_pid()), "1000");
}
