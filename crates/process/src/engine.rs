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
    admission::{Full, PATIENCE, Place},
    loads::Loads,
    metrics,
    process::{Bounds, Process, ProcessStartError, Stopped, Waiting},
    scratch::ScratchRoot,
    standby::{Acted, Standby, StandbyStatus},
};

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

/// A handle to the part of a process that runs programs.
///
/// Clones share the engine; dropping the last one ends every process.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    admission: Admission,
    loads: Loads,
    standby: Standby,
    scratches: ScratchRoot,
    bounds: Bounds,
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
    #[error("{waiting} evaluations wait already")]
    QueueFull {
        /// Number of evaluations already waiting.
        waiting: usize,
    },
    /// The program could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The program wrote more to standard output than its limit.
    #[error("it wrote more than {limit} bytes")]
    OutputTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The deadline passed while the evaluation was queued or running.
    #[error("its time was up after {queued:.1?} queued and {running:.1?} running")]
    DeadlineExceeded {
        /// Time spent waiting for a permit.
        queued: Duration,
        /// Run time of the program; zero if it was not started.
        running: Duration,
        /// Standard error up to the deadline.
        stderr: Bytes,
    },
    /// A system call failed.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
}

// === impl Engine ===

impl Engine {
    /// Creates an engine on the current tokio runtime.
    #[must_use]
    pub fn new(options: &EngineOptions) -> Self {
        let inner = Arc::new(Inner {
            admission: Admission::new(options.parallel, options.max_waiting),
            loads: Loads::default(),
            standby: Standby::new(options.standby),
            scratches: ScratchRoot::default(),
            bounds: Bounds {
                stdout: options.limits.stdout,
                stderr: options.limits.stderr,
            },
        });
        if inner.standby.is_on() {
            tokio::spawn(keep_standbys(Arc::downgrade(&inner)));
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
        let mut place = inner.enter(program, arrived, deadline).await?;
        let admitted = Instant::now();
        let queued = admitted.duration_since(arrived);
        metrics::instruments()
            .queue_wait
            .record(queued.as_secs_f64(), &[]);

        let (process, is_fresh) = inner.process(program)?;
        let process = process.feed(input);
        // While this process works, the next standby starts on a free core.
        self.refill(program);
        let limit = inner.bounds.stdout;
        let completed = {
            let run = process.complete(inner.bounds, deadline.into());
            let mut run = std::pin::pin!(run.instrument(debug_span!("run")));
            tokio::select! {
                biased;
                ended = &mut run => ended,
                () = sleep(PATIENCE) => {
                    place.step_aside();
                    run.await
                }
            }
        };
        // A standby did part of its work before the request, so its run time says nothing about the
        // load.
        if is_fresh && let Ok(ended) = &completed {
            let ran = admitted.elapsed();
            inner.loads.learn(program, ran, ended.computed);
        }
        drop(place);
        self.refill(program);
        match completed {
            Ok(ended) => Ok(Completed {
                stdout: ended.stdout,
                stderr: ended.stderr,
                exit: ended.exit,
            }),
            Err(Stopped::OutputTooLarge) => Err(RunError::OutputTooLarge { limit }),
            Err(Stopped::DeadlineExceeded { stderr }) => Err(RunError::DeadlineExceeded {
                queued,
                running: admitted.elapsed(),
                stderr,
            }),
            Err(Stopped::Io(error)) => Err(error.into()),
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
        self.0.standby.status()
    }

    /// Ends the standbys of all programs except those for which `keep` returns true.
    ///
    /// Used after a configuration change that turns standby off for programs.
    pub fn retain_standbys(&self, keep: impl FnMut(&Program) -> bool) {
        self.0.standby.retain(keep);
    }

    /// Starts a standby in the background if one is wanted and a core is free.
    fn refill(&self, program: &Arc<Program>) {
        let inner = &self.0;
        if inner.standby.wants(program) && inner.admission.has_room() {
            let (inner, program) = (inner.clone(), program.clone());
            // Starting a process blocks its thread until the program is loaded.
            tokio::task::spawn_blocking(move || inner.start_standby(&program));
        }
    }
}

// === impl Inner ===

impl Inner {
    async fn enter(
        &self,
        program: &Arc<Program>,
        arrived: Instant,
        deadline: Instant,
    ) -> Result<Place, RunError> {
        let enter = self.admission.enter(|| self.loads.of(program));
        let enter = enter.instrument(debug_span!("queue"));
        match timeout_at(TokioInstant::from_std(deadline), enter).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(Full { waiting })) => Err(RunError::QueueFull { waiting }),
            Err(_) => Err(RunError::DeadlineExceeded {
                queued: arrived.elapsed(),
                running: Duration::ZERO,
                stderr: Bytes::new(),
            }),
        }
    }

    /// Returns a process, and whether it was started for this evaluation.
    fn process(&self, program: &Arc<Program>) -> Result<(Process, bool), RunError> {
        let _span = debug_span!("spawn").entered();
        let waiting = self.standby.take(program);
        if self.standby.is_on_for(program) {
            metrics::instruments().standby(&program.name(), waiting.is_some());
        }
        if let Some(process) = waiting {
            return Ok((process, false));
        }
        match Process::start(program, &self.scratches) {
            Ok(process) => Ok((process, true)),
            Err(ProcessStartError::Program(error)) => Err(error.into()),
            Err(ProcessStartError::System(error)) => Err(error.into()),
        }
    }

    fn start_standby(&self, program: &Arc<Program>) {
        let Some(opening) = self.standby.opening(program) else {
            return;
        };
        match Waiting::start(program, &self.scratches) {
            Ok(process) => opening.fill(process),
            // The next evaluation fails with the same error and reports it.
            Err(error) => tracing::debug!(%error, "no standby"),
        }
    }
}

/// Replaces old standbys and dismisses those that act before their input arrives, until the engine
/// is dropped.
async fn keep_standbys(engine: Weak<Inner>) {
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let acted = tokio::select! {
            biased;
            _ = ticks.tick() => Vec::new(),
            acted = acted(&engine) => acted,
        };
        let Some(inner) = engine.upgrade() else {
            return;
        };
        if acted.is_empty() {
            sweep(inner.clone()).await;
        }
        for acted in acted {
            inner.standby.dismiss(acted).await;
        }
    }
}

/// Waits for standbys that act, without keeping the engine alive.
async fn acted(engine: &Weak<Inner>) -> Vec<Acted> {
    poll_fn(|context| match engine.upgrade() {
        Some(inner) => inner.standby.poll_acted(context),
        None => Poll::Pending,
    })
    .await
}

async fn sweep(inner: Arc<Inner>) {
    if inner.standby.is_empty() {
        return;
    }
    let wanting = inner.standby.sweep();
    if !wanting.is_empty() {
        let _ = tokio::task::spawn_blocking(move || {
            wanting
                .iter()
                .for_each(|program| inner.start_standby(program));
        })
        .await;
    }
}
