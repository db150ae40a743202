//! The runner as a process outside the cluster, which it accesses with a kubeconfig.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use runner_proto::{
    health::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    },
    runner_status::{
        GetStatusRequest, GetStatusResponse, Pod, runner_status_client::RunnerStatusClient,
    },
};
use runner_test_support::ServerProcess;
use rustix::process::Signal;
use tonic::transport::Channel;

use crate::{Stage, eventually};

/// A runner on a free port, which is killed when this value is dropped.
pub struct Runner {
    process: ServerProcess,
    _scratch: tempfile::TempDir,
}

// === impl Runner ===

impl Runner {
    /// Starts a runner for the stage's namespace with additional flags, and waits until it listens.
    pub async fn start(stage: &Stage, flags: &[&str]) -> Self {
        Self::start_in(stage, flags, &[]).await
    }

    /// Starts a runner to which pods can announce themselves.
    pub async fn start_with_announcements(stage: &Stage, flags: &[&str]) -> Self {
        Self::start(stage, &[&crate::ANNOUNCE_FLAGS, flags].concat()).await
    }

    /// Starts a runner with additional flags and environment variables.
    pub async fn start_in(stage: &Stage, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let functions = scratch.path().join("functions");
        fs::create_dir(&functions).expect("a directory for functions");
        let mut command = Command::new(program("function-runner"));
        command
            .arg("--port=0")
            .arg(format!("--pod-namespace={}", stage.namespace()))
            .arg(format!("--functions={}", functions.display()))
            .args(flags)
            .env("KUBECONFIG", stage.bed().kubeconfig())
            .env("WRAPPER_SERVER_IMAGE", stage.wrapper_image())
            .env("OTEL_METRICS_EXPORTER", "none")
            .envs(environment.iter().copied())
            .stdout(Stdio::null());
        Self {
            process: ServerProcess::start(command).await,
            _scratch: scratch,
        }
    }

    /// Waits until the runner reports `SERVING`; it has then read the state of the cluster.
    pub async fn serving(&self) {
        let channel = Channel::from_shared(format!("http://{}", self.address()));
        let channel = channel.expect("an address").connect_lazy();
        eventually("a serving runner", async || {
            let mut client = HealthClient::new(channel.clone());
            let answer = client.check(HealthCheckRequest::default()).await;
            answer.is_ok_and(|answer| answer.into_inner().status() == ServingStatus::Serving)
        })
        .await;
    }

    /// Returns the runner's status.
    pub async fn status(&self) -> GetStatusResponse {
        let channel = Channel::from_shared(format!("http://{}", self.address()));
        let channel = channel.expect("an address").connect_lazy();
        let mut client = RunnerStatusClient::new(channel);
        let answer = client.get_status(GetStatusRequest {}).await;
        answer.expect("the runner returns its status").into_inner()
    }

    /// Returns the status of all pods of the runner.
    pub async fn pods(&self) -> Vec<Pod> {
        let runtime = self.status().await.pod.expect("the pod runtime is on");
        let functions = runtime.functions.into_iter();
        functions.flat_map(|function| function.pods).collect()
    }

    /// Returns the status of the only pod.
    pub async fn only_pod(&self) -> Pod {
        let mut pods = self.pods().await;
        assert_eq!(pods.len(), 1);
        pods.remove(0)
    }

    /// Returns host and port of the runner.
    #[must_use]
    pub fn address(&self) -> String {
        self.process.address.to_string()
    }

    /// Returns the log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops the runner with SIGTERM and returns its exit status.
    pub async fn stop(self) -> ExitStatus {
        self.terminate();
        self.ended().await
    }

    /// Sends SIGTERM, as Kubernetes does.
    pub fn terminate(&self) {
        self.process.signal(Signal::TERM);
    }

    /// Waits for the end of the runner.
    pub async fn ended(mut self) -> ExitStatus {
        self.process.ended().await
    }
}

impl Drop for Runner {
    /// Kills the runner, so that it leaves its pods to the next one.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("=== the runner's log ===\n{}", self.log());
        }
        self.process.kill();
    }
}

/// Returns the path of a binary of this workspace, which is beside the directory of the test
/// program.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let target = own
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps/test");
    let program = target.join(name);
    assert!(
        program.exists(),
        "{} is not built; `make test` builds it",
        program.display()
    );
    program
}
