//! Functions, their configuration, and the flags of a runner for them.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use runner_test_support::without_telemetry;
use tempfile::TempDir;

use super::Runner;

/// The settings for the start of a runner.
///
/// Functions are shell scripts; the function `x` has the image `example.com/fn/x:v1`.
pub struct Setup {
    directory: TempDir,
    config: String,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
}

// === impl Setup ===

impl Setup {
    pub fn new() -> Self {
        let setup = Self {
            directory: tempfile::tempdir().unwrap(),
            config: "functions:\n".to_owned(),
            flags: Vec::new(),
            environment: Vec::new(),
        };
        fs::create_dir(setup.path("functions")).unwrap();
        fs::create_dir(setup.path("tmp")).unwrap();
        setup
    }

    /// Returns a setup with a single function.
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

    /// Adds a configuration entry without creating its file.
    pub fn entry(mut self, name: &str, images: &[&str]) -> Self {
        let entry = format!("- function: {name}\n  images: [{}]\n", images.join(", "));
        self.config.push_str(&entry);
        self
    }

    /// Turns standby off for the last entry.
    pub fn without_standby(mut self) -> Self {
        self.config.push_str("  standby: false\n");
        self
    }

    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub fn environment(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Enables the pod runtime, with an API server at this address.
    pub fn cluster(self, address: SocketAddr) -> Self {
        let kubeconfig = self.path("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{name: test, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: test, user: {{}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n"
        );
        fs::write(&kubeconfig, text).unwrap();
        self.flag("--disable-runtimes=")
            .flag("--announce-port=0")
            .environment("KUBECONFIG", kubeconfig.to_str().unwrap())
            .environment("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
    }

    /// Writes a script into the functions directory.
    pub fn script(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"), 0o755);
    }

    /// Writes a file with any content and mode into the functions directory.
    pub fn file(&self, name: &str, content: &str, mode: u32) {
        let path = self.path("functions").join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns a path in the test's directory.
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
            // There is no cluster by default.
            .arg("--disable-runtimes=pod")
            .arg(flag("--functions", &functions))
            .arg(flag("--config", &config))
            .args(&self.flags)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // Reveals files that a function leaves behind.
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.directory.path());
        Runner::start(command, self).await
    }
}

/// Returns the command of the binary in a clean environment.
///
/// Telemetry is not exported, and backtraces are enabled so that a test notices them.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_function-runner"));
    without_telemetry(&mut command);
    // The binary must use no cluster except the one of the test.
    for name in [
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "WRAPPER_SERVER_IMAGE",
    ] {
        command.env_remove(name);
    }
    command
        .env("HOME", "/nonexistent")
        .env("RUST_BACKTRACE", "1")
        .stdout(Stdio::null());
    command
}

fn flag(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}
