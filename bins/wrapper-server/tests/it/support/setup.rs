//! The command line and environment of a wrapper.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use runner_test_support::{Ended, ServerProcess, without_telemetry};

use super::wrapper_server;

/// The settings for the start of a wrapper.
pub struct Setup {
    /// Words in front of the wrapper's path: a program that sets up the environment and then
    /// executes the wrapper.
    before: Vec<OsString>,
    program: PathBuf,
    flags: Vec<String>,
    entrypoint: Vec<OsString>,
    environment: Option<Vec<(String, String)>>,
    added: Vec<(String, String)>,
    directory: Option<PathBuf>,
    namespaced: bool,
}

// === impl Setup ===

impl Setup {
    pub fn new<W: AsRef<OsStr>>(entrypoint: &[W]) -> Self {
        Self {
            before: Vec::new(),
            program: wrapper_server().to_owned(),
            flags: vec!["--port=0".to_owned()],
            entrypoint: entrypoint
                .iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            environment: None,
            added: Vec::new(),
            directory: None,
            namespaced: false,
        }
    }

    /// Returns a setup for a function written in shell.
    pub fn script(script: &str) -> Self {
        Self::new(&["/bin/sh", "-c", script])
    }

    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.added.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets these variables and no others.
    pub fn only_env(mut self, variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.environment = Some(variables.iter().map(owned).collect());
        self
    }

    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Starts the wrapper through another program.
    pub fn under<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.before.extend(words.into_iter().map(Into::into));
        self
    }

    /// Uses another copy of the wrapper.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Starts the wrapper as PID 1, as in a pod.
    pub fn pid_one(mut self) -> Self {
        self.namespaced = true;
        self.under([
            "unshare",
            "--fork",
            "--pid",
            "--mount-proc",
            "--kill-child",
            "--",
        ])
    }

    /// Starts the wrapper as an unprivileged user.
    pub fn nobody(self) -> Self {
        self.under([
            "setpriv",
            "--reuid=10001",
            "--regid=10001",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        ])
    }

    pub async fn start(self) -> ServerProcess {
        if self.namespaced {
            ServerProcess::start_in_namespace(self.command()).await
        } else {
            ServerProcess::start(self.command()).await
        }
    }

    /// Runs a wrapper that cannot serve, until it exits.
    pub fn refuses(self) -> Ended {
        Ended::of(self.command())
    }

    fn command(&self) -> Command {
        let mut words = self.before.clone();
        words.push(self.program.clone().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&self.flags).arg("--");
        command.args(&self.entrypoint);
        match &self.environment {
            Some(variables) => {
                command.env_clear();
                command.envs(variables.iter().cloned());
            }
            None => {
                without_telemetry(&mut command);
            }
        }
        command.envs(self.added.iter().cloned());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdout(Stdio::null());
        command
    }
}
