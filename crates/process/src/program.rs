//! What to run, and how a process of it is started.

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

#[cfg(feature = "confined")]
use rustix::process::{Resource, Rlimit, prlimit};
use rustix::{
    fs::{Access, OFlags, access, fcntl_setfl},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};

use crate::orphans;

/// A function's program and what it finds when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The executable. Always with a slash: nothing is looked up in a `PATH`.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment, which many programs share.
    pub env: Arc<[(OsString, OsString)]>,
    /// What else it finds.
    pub surroundings: Surroundings,
    /// Whether processes of it may be started before their input arrives. True unless the function
    /// acts before it has read its input.
    pub standby: bool,
}

/// Where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surroundings {
    /// Beside us: an empty directory of its own as working directory, `HOME` and `TMPDIR`, and
    /// resource limits.
    Confined,
    /// In its own image, where everything is as the image says.
    Inherited,
}

/// A process, and our ends of its pipes, none of which blocks.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Why a program did not start, in Go's words, which package authors know.
#[derive(Debug, thiserror::Error)]
#[error("fork/exec {}: {}", path.display(), in_go(source))]
pub struct StartError {
    path: PathBuf,
    why: &'static str,
    #[source]
    source: io::Error,
}

/// A confined function gets no core dumps, a bounded number of files, and cannot fill the disk with one.
#[cfg(feature = "confined")]
const LIMITS: [(Resource, u64); 3] = [
    (Resource::Core, 0),
    (Resource::Nofile, 4096),
    (Resource::Fsize, 1 << 30),
];

// === impl Program ===

impl Program {
    /// A confined program with an empty environment and no arguments.
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

    /// The name a metric knows it by: its file's.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Starts a process of it as the leader of its own group.
    ///
    /// Nothing here may need code between fork and exec: the standard library then starts it by
    /// `posix_spawn`, without copying our page tables. Limits are therefore set from outside.
    pub(crate) fn start(&self, directory: Option<&Path>) -> Result<Started, StartError> {
        self.spawn(directory)
            .map_err(|source| StartError::new(&self.path, source))
    }

    fn spawn(&self, directory: Option<&Path>) -> io::Result<Started> {
        // Made here and not by the command, whose ends would have to be told not to block by two
        // more calls each.
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
        #[cfg(feature = "confined")]
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
    /// Looks for what would keep a file from being started, without starting it.
    ///
    /// # Errors
    /// When the file is missing, or is none that this user may execute.
    pub fn foresee(path: &Path) -> Result<(), Self> {
        let refused = match access(path, Access::EXEC_OK) {
            Ok(()) if fs::metadata(path).is_ok_and(|found| found.is_dir()) => Errno::ACCESS,
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        Err(Self::new(path, refused.into()))
    }

    /// Names the file as the caller does.
    #[must_use]
    pub fn named(mut self, path: PathBuf) -> Self {
        self.path = path;
        self
    }

    /// The cause in plain words, with what to do where that is known.
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

/// The system's message as Go prints it.
fn in_go(error: &io::Error) -> String {
    let text = error.to_string();
    // Behind it is the number, in parentheses.
    let text = text.split('(').next().unwrap_or_default();
    let mut letters = text.trim_end().chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// A process may be gone already, or the system may not let us: neither harms the evaluation.
#[cfg(feature = "confined")]
fn restrict(pid: Pid) {
    for (resource, maximum) in LIMITS {
        let limit = Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        };
        let _ = prlimit(Some(pid), resource, limit);
    }
}

/// If memory runs out, the function goes before its server does.
pub(crate) fn prefer_for_oom(pid: Pid) {
    let _ = fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_pid()), "1000");
}
