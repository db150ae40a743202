//! The way of an evaluation through this crate: a place, a process, its end.

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

/// What an engine may use.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Processes at once; 0: as many as keep the cores busy.
    pub parallel: usize,
    /// Evaluations that may wait for a place.
    pub max_waiting: usize,
    /// Processes kept ready for each function in use; 0 turns standby off.
    pub standby: usize,
    /// What one process may write.
    pub limits: Limits,
}

/// How much a process may write.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// More standard output than this is an error.
    pub stdout: usize,
    /// Of more standard error than this the middle is dropped.
    pub stderr: usize,
}

/// Runs programs. Cheap to clone; the last one dropped ends every process.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    admission: Admission,
    loads: Loads,
    standby: Standby,
    scratches: ScratchRoot,
    bounds: Bounds,
}

/// A program that ended by itself.
#[derive(Debug)]
pub struct Completed {
    /// All it wrote to its standard output.
    pub stdout: Bytes,
    /// What it wrote to its standard error, the middle cut out if it was long.
    pub stderr: Bytes,
    /// How it ended.
    pub exit: Exit,
}

/// Why a program did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Too many evaluations wait.
    #[error("{waiting} evaluations wait already")]
    QueueFull {
        /// How many.
        waiting: usize,
    },
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It wrote more than it may.
    #[error("it wrote more than {limit} bytes")]
    OutputTooLarge {
        /// What it may write.
        limit: usize,
    },
    /// Its time was up.
    #[error("its time was up after {queued:.1?} queued and {running:.1?} running")]
    DeadlineExceeded {
        /// How long it waited for a place.
        queued: Duration,
        /// How long it ran.
        running: Duration,
        /// What it had written to its standard error.
        stderr: Bytes,
    },
    /// The system refused something.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
}

// === impl Engine ===

impl Engine {
    /// An engine on the current tokio runtime.
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
        // The disk may be slow, and nobody waits for what an earlier process left.
        #[cfg(feature = "confined")]
        tokio::task::spawn_blocking(crate::scratch::remove_abandoned);
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
        // Behind the one that is at work the next one starts, on a core that is free.
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
        // A standby has done a part of its work before.
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

    /// The gate in front of the cores.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// The standbys of each program in use, and the programs that get none because they act before
    /// their input arrives.
    #[must_use]
    pub fn standby(&self) -> Vec<StandbyStatus> {
        self.0.standby.status()
    }

    /// Ends the processes that wait for a request of any other program than those to keep. For a
    /// configuration that turns standby off for programs that have had it.
    pub fn retain_standbys(&self, keep: impl FnMut(&Program) -> bool) {
        self.0.standby.retain(keep);
    }

    /// Starts a standby off the request's way, if a core is free for it.
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

    /// A process, and whether it was started for this.
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
            // The next evaluation meets the same error and reports it.
            Err(error) => tracing::debug!(%error, "no standby"),
        }
    }
}

/// Renews standbys that grew old, and dismisses those that act before their input arrived, until
/// the engine is gone.
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

/// Waits for standbys that act. Does not keep the engine alive.
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
