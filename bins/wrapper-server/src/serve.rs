//! Serves the function and performs the duties of PID 1.

use std::{process::ExitCode, sync::Arc};

use runner_core::{Evaluation, EvaluationFuture, Evaluator, defaults};
use runner_process::{Engine, EngineOptions, Limits, OrphanSweeper, Program};
use runner_program::{ProgramEvaluator, Wording};
use runner_service::{Lifecycle, ListenAt, Server, ServerOptions};
use runner_telemetry::{LogFormat, LogOptions, propagation};
use tracing::{info, warn};

use crate::{announce::Announcement, entrypoint, flags::Flags, print_error};

/// Maximum number of queued evaluations; the runner starts another pod long before.
const MAX_QUEUED: usize = 1000;

/// The function of this pod.
struct WrappedFunction {
    program: Arc<Program>,
    programs: ProgramEvaluator,
}

/// Serves until a signal stops the process.
pub(crate) fn main(flags: Flags) -> ExitCode {
    // The environment contains a token: no process of the same user may read it from /proc.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let program = match entrypoint::program(&flags.entrypoint) {
        Ok(program) => program,
        Err(error) => return print_error(&error.to_string(), error.exit_code()),
    };
    // A single thread: evaluations are other processes, and a pod has a small share of a core.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return print_error(&format!("cannot start: {error}"), 1),
    };
    match runtime.block_on(serve(flags, program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, 1),
    }
}

async fn serve(flags: Flags, program: Program) -> Result<(), String> {
    let log = LogOptions {
        level: flags.verbosity,
        format: LogFormat::Auto,
    };
    let telemetry = runner_telemetry::init("wrapper-server", log).map_err(|e| e.to_string())?;
    let served = serve_with_telemetry(flags, program).await;
    telemetry.shutdown().await;
    served
}

async fn serve_with_telemetry(flags: Flags, program: Program) -> Result<(), String> {
    if let Err(error) = runner_process::become_subreaper() {
        warn!(%error, "processes that the function leaves behind may stay");
    }
    let _sweeper = OrphanSweeper::start();
    let lifecycle = Lifecycle::default();
    lifecycle
        .drain_on_signals(flags.drain_timeout, runner_process::kill_all_functions)
        .map_err(|error| format!("cannot watch for signals: {error}"))?;

    let wrapped = Arc::new(WrappedFunction::new(&flags, program));
    let options = ServerOptions::plaintext(flags.max_request_body_size, propagation::set_parent);
    let at = ListenAt::everywhere(flags.port);
    let server = Server::bind(at, wrapped, lifecycle.clone(), options)
        .await
        .map_err(|error| error.to_string())?;
    let address = server.address().map_err(|error| error.to_string())?;
    lifecycle.ready();
    info!(%address, entrypoint = ?flags.entrypoint, "serving");
    if let Some(announcement) = Announcement::from_environment(address) {
        tokio::spawn(announcement.send());
    }
    server.serve().await.map_err(|error| error.to_string())
}

// === impl WrappedFunction ===

impl WrappedFunction {
    fn new(flags: &Flags, program: Program) -> Self {
        let engine = Engine::new(&EngineOptions {
            parallel: flags.max_parallel,
            max_waiting: MAX_QUEUED,
            standby: flags.standby,
            limits: Limits {
                stdout: flags.max_request_body_size,
                stderr: defaults::MAX_LOG_SIZE,
            },
        });
        let programs = ProgramEvaluator::new(
            engine,
            Wording::Wrapper,
            "wrapper",
            flags.function_timeout,
            flags.max_request_body_size,
        );
        Self {
            program: Arc::new(program),
            programs,
        }
    }
}

impl Evaluator for WrappedFunction {
    fn evaluate(&self, mut evaluation: Evaluation) -> EvaluationFuture<'_> {
        Box::pin(async move {
            let image = std::mem::take(&mut evaluation.image);
            self.programs
                .evaluate(&self.program, &image, &mut evaluation)
                .await
        })
    }
}
