//! Starts the server from the flags and runs it until it is stopped.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use runner_cluster::FunctionConfigWatch;
use runner_config::{Binaries, Configuration, FileOptions, OBJECTS_TIMEOUT, Wanted};
use runner_core::{Chain, Evaluator, Runtime, defaults};
use runner_exec::{Exec, Files};
use runner_pod::{Pod, Readiness};
use runner_process::{Admission, Engine, EngineOptions, Limits, OrphanSweeper};
use runner_program::{ProgramEvaluator, Wording};
use runner_service::{Lifecycle, ListenAt, Server, ServerOptions, StuckCheck};
use runner_telemetry::LogOptions;
use tracing::{info, warn};

use crate::{
    enabled::Enabled,
    flags::{Flags, ServerFlags},
    pods::{self, Cluster},
    status::Status,
    tls,
};

/// Time between the start of draining and the drain of the pod runtime, 1 s.
///
/// In this time all clients receive the GOAWAY and send their next calls to another replica.
const GOAWAY_DELAY: Duration = Duration::from_secs(1);

/// Serves until a signal stops the process.
pub(crate) fn run(flags: Flags) -> Result<()> {
    // All users of TLS share one provider. This fails only if called twice, which would be a bug.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(flags))
}

/// Returns the number of worker threads: one for every four cores, at least one.
///
/// Functions are other processes. A few threads move their bytes, and more threads would only wake
/// each other.
fn workers() -> usize {
    (Admission::cores() / 4).max(1)
}

async fn serve(flags: Flags) -> Result<()> {
    let log = LogOptions {
        level: flags.server.log_level,
        format: flags.server.log_format,
    };
    let telemetry = runner_telemetry::init("function-runner", log)?;
    let served = serve_with_telemetry(flags).await;
    telemetry.shutdown().await;
    served
}

async fn serve_with_telemetry(flags: Flags) -> Result<()> {
    let started = Instant::now();
    if let Err(error) = runner_process::become_subreaper() {
        warn!(%error, "processes that functions leave behind may stay");
    }
    let _sweeper = OrphanSweeper::start();
    let lifecycle = Lifecycle::default();
    lifecycle
        .drain_on_signals(
            flags.server.drain_timeout,
            runner_process::kill_all_functions,
        )
        .context("cannot watch for signals")?;

    let mut enabled = Enabled::from_disabled(&flags.server.disable_runtimes);
    enabled.pod = enabled.pod && pods::is_usable(&flags)?;
    let configuration = Configuration::load(files(&flags, enabled))?;
    let _reload = configuration.spawn_reload()?;
    let mut cluster = if enabled.pod {
        Some(Cluster::join(&flags, &configuration).await?)
    } else {
        None
    };
    let mut function_configs = if enabled.exec && !enabled.pod {
        pods::watch_objects(&flags, &configuration).await
    } else {
        None
    };
    let engine = enabled.exec.then(|| engine(&flags, &configuration));
    let status = Status {
        started,
        configuration: configuration.clone(),
        exec: engine.clone(),
        pods: cluster.as_ref().map(|cluster| cluster.status(&flags.pod)),
    };
    let runtimes = runtimes(engine, &flags, &configuration, cluster.as_ref())?;
    let chain = Chain::new(runtimes, &flags.server.default_image_prefix);
    let stuck = cluster
        .as_ref()
        .map(|cluster| driver_check(cluster.pods.clone()));
    let (chain, status) = (Arc::new(chain), Arc::new(status));
    let server = bind(&flags.server, chain, status, stuck, &lifecycle).await?;
    if let Some(cluster) = &cluster {
        drain_with(&lifecycle, cluster.pods.clone(), flags.server.drain_timeout);
    }
    let pods = cluster.as_ref().map(|cluster| cluster.pods.clone());
    let mut ready = Box::pin(become_ready(lifecycle, configuration, enabled, pods));
    // Without a cluster there is nothing to wait for: the first health check returns SERVING.
    if futures::poll!(&mut ready).is_pending() {
        tokio::spawn(ready);
    }
    info!(address = %server.address()?, version = env!("CARGO_PKG_VERSION"), "serving");
    tokio::select! {
        served = server.serve() => served?,
        reason = critical_task_ended(cluster.as_mut(), function_configs.as_mut()) => {
            bail!("{reason}; this is a defect, and the runner ends so that it is started again")
        }
    }
    info!("drained");
    Ok(())
}

/// Waits until a task has ended without which the runner cannot do its work. Returns the reason.
async fn critical_task_ended(
    cluster: Option<&mut Cluster>,
    function_configs: Option<&mut FunctionConfigWatch>,
) -> String {
    match (cluster, function_configs) {
        (
            Some(Cluster {
                function_configs,
                pods,
            }),
            _,
        ) => tokio::select! {
            reason = pods.ended() => reason,
            reason = function_configs.ended() => reason,
        },
        (None, Some(function_configs)) => function_configs.ended().await,
        (None, None) => std::future::pending().await,
    }
}

/// Returns the files to read; those of a disabled runtime are skipped, with any errors in them.
fn files(flags: &Flags, enabled: Enabled) -> FileOptions {
    let wanted = |by_runtime: bool, given: &Option<PathBuf>| match given {
        _ if !by_runtime => Wanted::No,
        Some(_) => Wanted::Required,
        None => Wanted::Optional,
    };
    let or_default = |given: &Option<PathBuf>, default: &str| {
        given.clone().unwrap_or_else(|| PathBuf::from(default))
    };
    FileOptions {
        functions_dir: flags.exec.functions.clone(),
        config: or_default(&flags.exec.config, "./config.yaml"),
        config_wanted: wanted(enabled.exec, &flags.exec.config),
        pod_cache_config: or_default(
            &flags.pod.pod_cache_config,
            "/pod-cache-config/pod-cache-config.yaml",
        ),
        pod_cache_wanted: wanted(enabled.pod, &flags.pod.pod_cache_config),
        default_prefix: flags.server.default_image_prefix.clone(),
        binaries: if enabled.exec {
            Binaries::Check
        } else {
            Binaries::Trust
        },
    }
}

/// Sets health to SERVING when all configuration is read and the pods of the cluster are known.
///
/// An API server that does not answer within [`OBJECTS_TIMEOUT`] delays only pods: executables of
/// `--config` are served without it. If the API server answers but denies access to pods, the
/// installation is wrong: the runner stays unready, so that a rollout keeps the working replicas.
async fn become_ready(
    lifecycle: Lifecycle,
    configuration: Configuration,
    enabled: Enabled,
    pods: Option<Pod>,
) {
    if !configuration.completes_by(None).await && enabled.exec {
        warn!(
            "the Kubernetes API server has not answered within {OBJECTS_TIMEOUT:?}: serving the \
             executables of --config alone; other functions are answered with UNAVAILABLE"
        );
        lifecycle.ready();
    }
    configuration.completed().await;
    if let Some(pods) = pods {
        let known = async |wanted| {
            let mut readiness = pods.readiness();
            readiness.wait_for(|now| *now >= wanted).await.is_ok()
        };
        if !known(Readiness::TemplatesUnknown).await {
            return;
        }
        let templates = tokio::time::timeout(OBJECTS_TIMEOUT, known(Readiness::Ready)).await;
        if templates.is_err() && enabled.exec {
            // Waiting for templates may be intended (--template-wait-timeout); executables need none.
            lifecycle.ready();
        }
        if !known(Readiness::Ready).await {
            return;
        }
        info!("in step with the cluster");
    }
    lifecycle.ready();
}

/// Returns a check of the driver, the task that the pod runtime depends on.
fn driver_check(pods: Pod) -> StuckCheck {
    Arc::new(move || {
        let duration = pods.stuck_for()?;
        Some(format!(
            "the task that looks after function pods has not run for {duration:.0?}"
        ))
    })
}

/// Drains the pod runtime when the server drains.
///
/// The pods are left to the next replica. Evaluations in them are finished, including those that
/// callers send before they receive the GOAWAY.
fn drain_with(lifecycle: &Lifecycle, pods: Pod, grace: Duration) {
    let lifecycle = lifecycle.clone();
    tokio::spawn(async move {
        lifecycle.draining().await;
        let delay = GOAWAY_DELAY.min(grace);
        tokio::time::sleep(delay).await;
        pods.drain(grace.saturating_sub(delay));
    });
}

/// Returns the enabled runtimes, always in the order exec, pod.
fn runtimes(
    engine: Option<Engine>,
    flags: &Flags,
    configuration: &Configuration,
    cluster: Option<&Cluster>,
) -> Result<Vec<Box<dyn Runtime>>> {
    let mut runtimes: Vec<Box<dyn Runtime>> = Vec::new();
    if let Some(engine) = engine {
        let exec = exec(engine, flags, configuration.clone())?;
        runtimes.push(Box::new(match cluster {
            Some(_) => exec.followed_by_another(),
            None => exec,
        }));
    }
    if let Some(cluster) = cluster {
        runtimes.push(Box::new(cluster.pods.clone()));
    }
    if runtimes.is_empty() {
        warn!("no runtime is enabled: every call is answered with NOT_FOUND");
    }
    Ok(runtimes)
}

fn engine(flags: &Flags, configuration: &Configuration) -> Engine {
    let engine = Engine::new(&EngineOptions {
        parallel: flags.exec.max_parallel_executions,
        max_waiting: flags.exec.max_queued_executions,
        standby: flags.exec.standby,
        limits: Limits {
            stdout: flags.server.max_request_body_size,
            stderr: defaults::MAX_LOG_SIZE,
        },
    });
    info!(
        functions = configuration.table().len(),
        parallel = engine.admission().parallel(),
        standby = flags.exec.standby,
        "exec runtime"
    );
    // In the background: the disk may be slow.
    tokio::task::spawn_blocking(runner_process::remove_abandoned_scratch_directories);
    tokio::spawn(end_standbys(engine.clone(), configuration.clone()));
    engine
}

/// Stops the standbys of programs for which a changed configuration turns standby off.
async fn end_standbys(engine: Engine, configuration: Configuration) {
    let mut changes = configuration.watch();
    while changes.changed().await.is_ok() {
        let table = configuration.table();
        engine.retain_standbys(|program| {
            let configured = table.executable_at(&program.path);
            configured.is_none_or(|executable| executable.standby)
        });
    }
}

fn exec(engine: Engine, flags: &Flags, configuration: Configuration) -> Result<Exec> {
    let programs = ProgramEvaluator::new(
        engine,
        Wording::Exec,
        Exec::NAME,
        flags.server.function_timeout,
        flags.server.max_request_body_size,
    );
    let files = Files::new(&flags.exec.functions, flags.exec.exec_absolute_paths)
        .context("cannot find the directory of --functions")?;
    Ok(Exec::new(configuration, files, programs))
}

async fn bind(
    flags: &ServerFlags,
    evaluator: Arc<dyn Evaluator>,
    status: Arc<Status>,
    stuck: Option<StuckCheck>,
    lifecycle: &Lifecycle,
) -> Result<Server> {
    let options = ServerOptions {
        message_limit: flags.max_request_body_size,
        trace_parent: Some(runner_telemetry::propagation::set_parent),
        status: Some(status),
        stuck,
        serves_late_calls: true,
        tls: tls::from_files(flags)?,
    };
    let at = ListenAt {
        address: flags.listen_address,
        port: flags.port,
    };
    Ok(Server::bind(at, evaluator, lifecycle.clone(), options).await?)
}
