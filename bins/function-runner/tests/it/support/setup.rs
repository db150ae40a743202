//! A directory of functions, their configuration, and the flags of a runner for them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::Runner;

/// What a runner is started with. Functions are shell scripts; the one called `x` stands for the
/// image `example.com/fn/x:v1`.
pub struct Setup {
    directory: TempDir,
    config: String,
    flags: Vec<String>,
}

// === impl Setup ===

impl Setup {
    pub fn new() -> Self {
        let setup = Self {
            directory: tempfile::tempdir().unwrap(),
            config: "functions:\n".to_owned(),
            flags: Vec::new(),
        };
        fs::create_dir(setup.path("functions")).unwrap();
        fs::create_dir(setup.path("tmp")).unwrap();
        setup
    }

    /// One function and nothing else.
    pub fn with(name: &str, script: &str) -> Self {
        Self::new().function(name, script)
    }

    pub fn function(self, name: &str, script: &str) -> Self {
        self.function_for(name, script, &[&format!("example.com/fn/{name}:v1")])
    }

    pub fn function_for(self, name: &str, script: &str, images: &[&str]) -> Self {
        self.script(name, script);
        self.entry(name, images)
    }

    /// An entry of the configuration whose file the test makes, or does not.
    pub fn entry(mut self, name: &str, images: &[&str]) -> Self {
        let entry = format!("- function: {name}\n  images: [{}]\n", images.join(", "));
        self.config.push_str(&entry);
        self
    }

    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Puts a script among the functions.
    pub fn script(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"), 0o755);
    }

    /// Puts a file of any kind among the functions.
    pub fn file(&self, name: &str, content: &str, mode: u32) {
        let path = self.path("functions").join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A path in the test's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn config_file(&self) -> PathBuf {
        self.path("config.yaml")
    }

    pub async fn start(self) -> Runner {
        fs::write(self.config_file(), &self.config).unwrap();
        let functions = self.path("functions");
        let config = self.config_file();
        let mut command = command();
        command
            .args(["--port", "0", "--listen-address", "127.0.0.1"])
            .args(["--log-format", "json"])
            // There is no cluster here.
            .arg("--disable-runtimes=pod")
            .arg(flag("--functions", &functions))
            .arg(flag("--config", &config))
            .args(&self.flags)
            // What a function leaves lying about is then seen.
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.directory.path());
        Runner::start(command, self).await
    }
}

/// The binary, in an environment that sends no telemetry anywhere and asks for backtraces, so that
/// a test sees if there are any.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_function-runner"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn flag(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}
