//! From flags to a serving process and its end.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use runner_config::{Configuration, FileOptions, Progress, Wanted};
use runner_core::{Evaluator, Runtime};
use runner_process::{Admission, Engine, EngineOptions, Limits, Orphans};
use runner_runtimes::{Chain, Exec, Local, Pod, Wording};
use runner_service::{Lifecycle, ListenAt, Server, ServerOptions};
use runner_telemetry::LogOptions;
use tracing::{info, warn};

use crate::{
    enabled::Enabled,
    flags::{Flags, ServerFlags},
    pods::Cluster,
    status::Status,
    tls,
};

/// Of longer logs the middle is cut out.
const LOG_LIMIT: usize = 4 << 20;

/// Once draining, this long for every client to hear of it and call elsewhere.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves until a signal ends it.
pub(crate) fn run(flags: Flags) -> Result<()> {
    // One provider for everything that speaks TLS; a second call would be a bug, not a user's error.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(flags))
}

/// Functions are other processes: a few threads move their bytes, and more only wake each other.
fn workers() -> usize {
    (Admission::cores() / 4).max(1)
}

async fn serve(flags: Flags) -> Result<()> {
    let log = LogOptions {
        level: flags.server.log_level,
        format: flags.server.log_format,
    };
    let telemetry = runner_telemetry::init("function-runner", log)?;
    let served = serve_observed(flags).await;
    telemetry.shutdown().await;
    served
}

async fn serve_observed(flags: Flags) -> Result<()> {
    let started = Instant::now();
    if let Err(error) = runner_process::become_subreaper() {
        warn!(%error, "processes that functions leave behind may stay");
    }
    let _orphans = Orphans::watch();
    let lifecycle = Lifecycle::default();
    lifecycle
        .drain_on_signals(flags.server.drain_timeout, runner_process::end_all)
        .context("cannot watch for signals")?;

    let enabled = Enabled::by(&flags.server.disable_runtimes);
    let configuration = Configuration::load(files(&flags, enabled))?;
    let _reload = configuration.spawn_reload()?;
    let cluster = if enabled.pod {
        Some(Cluster::join(&flags, &configuration).await?)
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
    let runtimes = runtimes(engine, &flags, &configuration, cluster.as_ref());
    let chain = Chain::new(runtimes, &flags.server.default_image_prefix);
    let server = bind(&flags.server, Arc::new(chain), Arc::new(status), &lifecycle).await?;
    if let Some(cluster) = &cluster {
        drain_with(&lifecycle, cluster.pods.clone(), flags.server.drain_timeout);
    }
    ready_when_in_step(lifecycle, cluster.as_ref());
    info!(address = %server.address()?, version = env!("CARGO_PKG_VERSION"), "serving");
    server.serve().await?;
    info!("drained");
    Ok(())
}

/// The file of a disabled runtime is not read: what is wrong with it is nobody's problem.
fn files(flags: &Flags, enabled: Enabled) -> FileOptions {
    let wanted = |by_runtime: bool, given: &Option<PathBuf>| match given {
        _ if !by_runtime => Wanted::No,
        Some(_) => Wanted::Required,
        None => Wanted::IfThere,
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
    }
}

/// Health says SERVING once every source of configuration has spoken, or cannot, and the pods of
/// the cluster are known.
fn ready_when_in_step(lifecycle: Lifecycle, cluster: Option<&Cluster>) {
    let Some(cluster) = cluster else {
        return lifecycle.ready();
    };
    let mut progress = cluster.follow.progress();
    let mut in_step = cluster.pods.in_step();
    tokio::spawn(async move {
        let _ = progress.wait_for(|now| *now != Progress::Pending).await;
        if in_step.wait_for(|known| *known).await.is_ok() {
            info!("in step with the cluster");
            lifecycle.ready();
        }
    });
}

/// The pods stay for the successor; what runs in them is finished, and so is what callers send
/// before they hear that we are going.
fn drain_with(lifecycle: &Lifecycle, pods: Pod, grace: Duration) {
    let lifecycle = lifecycle.clone();
    tokio::spawn(async move {
        lifecycle.draining().await;
        let goodbye = GOODBYE.min(grace);
        tokio::time::sleep(goodbye).await;
        pods.drain(grace.saturating_sub(goodbye));
    });
}

/// The enabled runtimes: exec, then pod, always.
fn runtimes(
    engine: Option<Engine>,
    flags: &Flags,
    configuration: &Configuration,
    cluster: Option<&Cluster>,
) -> Vec<Box<dyn Runtime>> {
    let mut runtimes: Vec<Box<dyn Runtime>> = Vec::new();
    if let Some(engine) = engine {
        runtimes.push(Box::new(exec(engine, flags, configuration.clone())));
    }
    if let Some(cluster) = cluster {
        runtimes.push(Box::new(cluster.pods.clone()));
    }
    if runtimes.is_empty() {
        warn!("no runtime is enabled: every call is answered with NOT_FOUND");
    }
    runtimes
}

fn engine(flags: &Flags, configuration: &Configuration) -> Engine {
    let engine = Engine::new(&EngineOptions {
        parallel: flags.exec.max_parallel_executions,
        max_waiting: flags.exec.max_queued_executions,
        standby: flags.exec.standby,
        limits: Limits {
            stdout: flags.server.max_request_body_size,
            stderr: LOG_LIMIT,
        },
    });
    info!(
        functions = configuration.table().len(),
        parallel = engine.admission().parallel(),
        standby = flags.exec.standby,
        "exec runtime"
    );
    engine
}

fn exec(engine: Engine, flags: &Flags, configuration: Configuration) -> Exec {
    let local = Local::new(
        engine,
        Wording::Exec,
        Exec::NAME,
        flags.server.function_timeout,
        flags.server.max_request_body_size,
    );
    Exec::new(configuration, local)
}

async fn bind(
    flags: &ServerFlags,
    evaluator: Arc<dyn Evaluator>,
    status: Arc<Status>,
    lifecycle: &Lifecycle,
) -> Result<Server> {
    let options = ServerOptions {
        message_limit: flags.max_request_body_size,
        trace_parent: Some(runner_telemetry::propagation::parent_of),
        status: Some(status),
        serves_late_calls: true,
        tls: tls::from_files(flags)?,
    };
    let at = ListenAt {
        address: flags.listen_address,
        port: flags.port,
    };
    Ok(Server::bind(at, evaluator, lifecycle.clone(), options).await?)
}
