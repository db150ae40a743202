//! The runner as a process outside the cluster, which it accesses with a kubeconfig.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
};

use runner_proto::{
    health::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    },
    runner_status::{
        GetStatusRequest, GetStatusResponse, Pod, runner_status_client::RunnerStatusClient,
    },
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use tonic::transport::Channel;

use crate::{Stage, wait::eventually};

/// A runner on a free port, which is killed when this value is dropped.
pub struct Runner {
    child: Child,
    port: u16,
    log: PathBuf,
    _scratch: tempfile::TempDir,
}

// === impl Runner ===

impl Runner {
    /// Starts a runner for the stage's namespace with additional flags, and waits until it listens.
    pub async fn start(stage: &Stage, flags: &[&str]) -> Self {
        Self::start_in(stage, flags, &[]).await
    }

    /// Starts a runner to which pods can announce themselves.
    pub async fn start_at_home(stage: &Stage, flags: &[&str]) -> Self {
        Self::start(stage, &[&crate::HOME, flags].concat()).await
    }

    /// Starts a runner with additional flags and environment variables.
    pub async fn start_in(stage: &Stage, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let functions = scratch.path().join("functions");
        fs::create_dir(&functions).expect("a directory for functions");
        let log = scratch.path().join("log");
        let output = File::create(&log).expect("a log");
        let child = Command::new(program("function-runner"))
            .arg("--port=0")
            .arg(format!("--pod-namespace={}", stage.namespace()))
            .arg(format!("--functions={}", functions.display()))
            .args(flags)
            .env("KUBECONFIG", stage.bed().kubeconfig())
            .env("WRAPPER_SERVER_IMAGE", stage.wrapper_image())
            .env("OTEL_METRICS_EXPORTER", "none")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .expect("the runner starts");
        let mut runner = Self {
            child,
            port: 0,
            log,
            _scratch: scratch,
        };
        eventually("a listening runner", async || {
            let ended = runner
                .child
                .try_wait()
                .expect("the runner can be waited for");
            assert!(
                ended.is_none(),
                "the runner ended ({ended:?}):\n{}",
                runner.log()
            );
            runner.port = serving_port(&runner.log()).unwrap_or_default();
            runner.port != 0
        })
        .await;
        runner
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
        answer.expect("the runner tells").into_inner()
    }

    /// Returns the status of the only pod.
    pub async fn only_pod(&self) -> Pod {
        let pods = self.status().await.pod.expect("the pod runtime is on");
        let mut pods: Vec<_> = pods
            .functions
            .into_iter()
            .flat_map(|function| function.pods)
            .collect();
        assert_eq!(pods.len(), 1);
        pods.remove(0)
    }

    /// Returns host and port of the runner.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the log so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Stops the runner with SIGTERM and returns its exit status.
    pub async fn stop(self) -> std::process::ExitStatus {
        self.ask_to_end();
        self.ended().await
    }

    /// Sends SIGTERM, as Kubernetes does.
    pub fn ask_to_end(&self) {
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            // The process has not been reaped, so the pid is still its own.
            kill_process(pid, Signal::TERM).expect("the runner can be signalled");
        }
    }

    /// Waits for the end of the runner.
    pub async fn ended(mut self) -> std::process::ExitStatus {
        self.child
            .wait()
            .await
            .expect("the runner can be waited for")
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("=== the runner's log ===\n{}", self.log());
        }
    }
}

/// Returns the path of a binary of this workspace, which is beside the directory of the test
/// program.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program knows where it is");
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

/// Returns the port in the runner's log message about listening.
///
/// A port chosen before the start might be taken by then.
fn serving_port(log: &str) -> Option<u16> {
    let line = log.lines().find(|line| line.contains("serving"))?;
    let (_, address) = line.split_once("address")?;
    let address = address.trim_start_matches(['=', '"', ':', ' ']);
    let end = address.find(['"', ' ']).unwrap_or(address.len());
    let address: SocketAddr = address.get(..end)?.parse().ok()?;
    Some(address.port())
}

/// Returns a port that is currently free.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
