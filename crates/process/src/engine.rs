//! Runs one evaluation: waits for admission, takes or starts a process, collects its output.

use std::{
    future::poll_fn,
    sync::{Arc, Weak},
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval, sleep, timeout_at};
use tracing::{Instrument, debug_span};

use crate::{
    Admission, Exit, Program, StartError,
    admission::{AdmissionPermit, QueueFull, SLOW_EVALUATION_THRESHOLD},
    load::HeavyPrograms,
    metrics,
    process::{Process, ProcessStartError, StandbyProcess, StopReason},
    scratch::ScratchRoot,
    standby::{ActedStandby, StandbySet, StandbyStatus},
};

/// Interval (5 s) at which old standbys are replaced and missing ones are started.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Configuration of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Maximum number of processes at once; 0 means as many as keep the cores busy.
    pub parallel: usize,
    /// Maximum number of evaluations that wait for a permit.
    pub max_waiting: usize,
    /// Number of processes kept ready for each function in use; 0 turns standby off.
    pub standby: usize,
    /// Limits on the output of one process.
    pub limits: Limits,
}

/// Limits on the output of a process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum length of standard output; a longer output is an error.
    pub stdout: usize,
    /// Maximum length of standard error; the middle of a longer one is dropped.
    pub stderr: usize,
}

/// A handle to the part of the runner or wrapper that runs programs.
///
/// Clones share the engine; dropping the last one ends every process.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    admission: Admission,
    heavy_programs: HeavyPrograms,
    standbys: StandbySet,
    scratch_root: ScratchRoot,
    limits: Limits,
}

/// The result of a program that ended by itself.
#[derive(Debug)]
pub struct Completed {
    /// The complete standard output.
    pub stdout: Bytes,
    /// Standard error, with the middle cut out if it was over the limit.
    pub stderr: Bytes,
    /// The exit code or signal.
    pub exit: Exit,
}

/// The reason why a program could not run or did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The queue is full.
    #[error("{waiting} evaluations are already waiting")]
    QueueFull {
        /// Number of evaluations already waiting.
        waiting: usize,
    },
    /// The program could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The program wrote more to standard output than its limit.
    #[error("standard output is longer than {limit} bytes")]
    OutputTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The deadline passed while the evaluation was queued or running.
    #[error("the deadline passed after {queued:.1?} queued and {running:.1?} running")]
    DeadlineExceeded {
        /// Time spent waiting for a permit.
        queued: Duration,
        /// Run time of the program; zero if it was not started.
        running: Duration,
        /// Standard error up to the deadline.
        stderr: Bytes,
    },
    /// A system call failed.
    #[error("a system call failed: {0}")]
    System(#[from] std::io::Error),
}

// === impl Engine ===

impl Engine {
    /// Creates an engine on the current tokio runtime.
    #[must_use]
    pub fn new(options: &EngineOptions) -> Self {
        let inner = Arc::new(Inner {
            admission: Admission::new(options.parallel, options.max_waiting),
            heavy_programs: HeavyPrograms::default(),
            standbys: StandbySet::new(options.standby),
            scratch_root: ScratchRoot::default(),
            limits: options.limits,
        });
        if inner.standbys.is_enabled() {
            tokio::spawn(maintain_standbys(Arc::downgrade(&inner)));
        }
        Self(inner)
    }

    /// Runs a program over an input until the deadline. Dropping the future ends the program.
    pub async fn run(
        &self,
        program: &Arc<Program>,
        input: Bytes,
        deadline: Instant,
    ) -> Result<Completed, RunError> {
        let inner = &self.0;
        let arrived = Instant::now();
        let mut permit = inner.acquire_permit(program, arrived, deadline).await?;
        let admitted = Instant::now();
        let queued = admitted.duration_since(arrived);
        metrics::instruments()
            .queue_wait
            .record(queued.as_secs_f64(), &[]);

        let (process, is_new) = inner.take_or_start_process(program)?;
        let process = process.write_input(input);
        // While this process works, the next standby starts on a free core.
        self.refill(program);
        let limit = inner.limits.stdout;
        let completed = {
            let run = process.complete(inner.limits, deadline.into());
            let mut run = std::pin::pin!(run.instrument(debug_span!("run")));
            tokio::select! {
                biased;
                ended = &mut run => ended,
                () = sleep(SLOW_EVALUATION_THRESHOLD) => {
                    permit.exchange_for_slow_permit();
                    run.await
                }
            }
        };
        // A standby did part of its work before the request, so its run time is no measure of the
        // load.
        if is_new && let Ok(ended) = &completed {
            let run_time = admitted.elapsed();
            inner
                .heavy_programs
                .record(program, run_time, ended.cpu_time);
        }
        drop(permit);
        self.refill(program);
        match completed {
            Ok(ended) => Ok(Completed {
                stdout: ended.stdout,
                stderr: ended.stderr,
                exit: ended.exit,
            }),
            Err(StopReason::OutputTooLarge) => Err(RunError::OutputTooLarge { limit }),
            Err(StopReason::DeadlineExceeded { stderr }) => Err(RunError::DeadlineExceeded {
                queued,
                running: admitted.elapsed(),
                stderr,
            }),
            Err(StopReason::Io(error)) => Err(error.into()),
        }
    }

    /// Returns the admission control of this engine.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// Returns the standbys of each program in use.
    ///
    /// Includes the programs that get none because they act before their input arrives.
    #[must_use]
    pub fn standby(&self) -> Vec<StandbyStatus> {
        self.0.standbys.status()
    }

    /// Ends the standbys of all programs except those for which `keep` returns true.
    ///
    /// Used after a configuration change that turns standby off for programs.
    pub fn retain_standbys(&self, keep: impl FnMut(&Program) -> bool) {
        self.0.standbys.retain(keep);
    }

    /// Starts a standby in the background if one is missing and a permit is free.
    fn refill(&self, program: &Arc<Program>) {
        let inner = &self.0;
        if inner.standbys.needs(program) && inner.admission.has_free_permit() {
            let (inner, program) = (inner.clone(), program.clone());
            // Starting a process blocks its thread until the program is loaded.
            tokio::task::spawn_blocking(move || inner.start_standby(&program));
        }
    }
}

// === impl Inner ===

impl Inner {
    /// Waits for a permit until the deadline.
    async fn acquire_permit(
        &self,
        program: &Arc<Program>,
        arrived: Instant,
        deadline: Instant,
    ) -> Result<AdmissionPermit, RunError> {
        let acquire = self
            .admission
            .acquire(|| self.heavy_programs.load_of(program));
        let acquire = acquire.instrument(debug_span!("queue"));
        match timeout_at(TokioInstant::from_std(deadline), acquire).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(QueueFull { waiting })) => Err(RunError::QueueFull { waiting }),
            Err(_) => Err(RunError::DeadlineExceeded {
                queued: arrived.elapsed(),
                running: Duration::ZERO,
                stderr: Bytes::new(),
            }),
        }
    }

    /// Returns a process, and whether it was started for this evaluation.
    fn take_or_start_process(&self, program: &Arc<Program>) -> Result<(Process, bool), RunError> {
        let _span = debug_span!("spawn").entered();
        let standby = self.standbys.take(program);
        if self.standbys.is_enabled_for(program) {
            metrics::instruments().record_standby(&program.name(), standby.is_some());
        }
        if let Some(process) = standby {
            return Ok((process, false));
        }
        match Process::start(program, &self.scratch_root) {
            Ok(process) => Ok((process, true)),
            Err(ProcessStartError::Program(error)) => Err(error.into()),
            Err(ProcessStartError::System(error)) => Err(error.into()),
        }
    }

    fn start_standby(&self, program: &Arc<Program>) {
        let Some(reservation) = self.standbys.reserve(program) else {
            return;
        };
        match StandbyProcess::start(program, &self.scratch_root) {
            Ok(process) => reservation.add(process),
            // The next evaluation fails with the same error and reports it.
            Err(error) => tracing::debug!(%error, "cannot start a standby"),
        }
    }
}

/// Replaces old standbys, and dismisses those that act before their input arrives, until the engine
/// is dropped.
async fn maintain_standbys(engine: Weak<Inner>) {
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let acted = tokio::select! {
            biased;
            _ = ticks.tick() => Vec::new(),
            acted = wait_for_acted_standbys(&engine) => acted,
        };
        let Some(inner) = engine.upgrade() else {
            return;
        };
        if acted.is_empty() {
            sweep_standbys(inner.clone()).await;
        }
        for acted in acted {
            inner.standbys.dismiss(acted).await;
        }
    }
}

/// Waits for standbys that act, without keeping the engine alive.
async fn wait_for_acted_standbys(engine: &Weak<Inner>) -> Vec<ActedStandby> {
    poll_fn(|context| match engine.upgrade() {
        Some(inner) => inner.standbys.poll_acted(context),
        None => Poll::Pending,
    })
    .await
}

/// Ends old standbys and starts missing ones.
async fn sweep_standbys(inner: Arc<Inner>) {
    if inner.standbys.is_empty() {
        return;
    }
    let programs = inner.standbys.sweep();
    if !programs.is_empty() {
        let _ = tokio::task::spawn_blocking(move || {
            programs
                .iter()
                .for_each(|program| inner.start_standby(program));
        })
        .await;
    }
}
