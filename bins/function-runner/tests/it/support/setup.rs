//! A directory of functions, their configuration, and the flags of a runner for them.

use std::{
    fs,
    net::SocketAddr,
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

    /// Turns the pod runtime on, with an API server at this address.
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
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
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
    // No cluster but the one of the test.
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
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn flag(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}
