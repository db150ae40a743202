//! Standbys: processes started before their request arrives.
//!
//! A KRM function reads its input to the end before it acts, so its process can start, load and
//! initialise while no caller waits. Each process still serves exactly one evaluation. A recently
//! used function keeps some standbys ready; an idle function keeps none.
//!
//! Standbys are watched. A program whose process ends or writes before its input arrives gets no
//! standby until its binary is replaced: it would act again and again without a request. An end by
//! SIGKILL or SIGTERM may have an outside cause, so it suspends the program only if the next
//! process ends in the same way.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant, SystemTime},
};

use crate::{
    Program,
    metrics::instruments,
    process::{EarlyAct, Process, Waiting},
};

/// Age (60 s) at which a standby is replaced: files that it read at its start may have changed.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Time (300 s) without evaluations after which a function is idle.
const IDLE_AFTER: Duration = Duration::from_secs(300);

/// The standbys of one program.
#[derive(Clone, Debug)]
pub struct StandbyStatus {
    /// The program of the standbys.
    pub program: Arc<Program>,
    /// Number of processes that wait for a request.
    pub ready: usize,
    /// The reason why the program gets no standby, if a process of it acted before its input
    /// arrived.
    pub suspended: Option<String>,
}

/// The standbys of an engine.
pub(crate) struct Standby {
    state: Mutex<State>,
    per_function: usize,
}

struct State {
    functions: HashMap<Arc<Program>, Kept>,
    /// Waker of the task that polls [`Standby::poll_acted`].
    watcher: Waker,
}

struct Kept {
    ready: Vec<Ready>,
    /// Number of processes being started, or being dismissed after an early act.
    pending: usize,
    last_used: Instant,
    /// Time at which a process was ended by SIGKILL or SIGTERM.
    ///
    /// Reset when a later process lives until its input arrives or until it is [`MAX_AGE`] old.
    killed: Option<Instant>,
    suspended: Option<Suspended>,
}

/// The early act for which a program gets no standby, and the binary that did it.
struct Suspended {
    act: EarlyAct,
    binary: Option<Binary>,
}

struct Ready {
    process: Waiting,
    binary: Option<Binary>,
    since: Instant,
}

/// A process that acted before its input arrived.
pub(crate) struct Acted {
    program: Arc<Program>,
    ready: Ready,
}

/// Identity of the file a process was started from: a replaced binary makes its standbys stale.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Binary {
    device: u64,
    inode: u64,
    modified: Option<SystemTime>,
}

/// A reservation to start one more standby of a program.
pub(crate) struct Opening<'a> {
    standby: &'a Standby,
    program: &'a Arc<Program>,
    binary: Option<Binary>,
}

// === impl Standby ===

impl Standby {
    /// Creates an empty set that keeps up to `per_function` standbys for each function; 0 turns it
    /// off.
    pub(crate) fn new(per_function: usize) -> Self {
        let state = State {
            functions: HashMap::new(),
            watcher: Waker::noop().clone(),
        };
        Self {
            state: Mutex::new(state),
            per_function,
        }
    }

    /// Returns whether any program may have standbys.
    pub(crate) fn is_on(&self) -> bool {
        self.per_function > 0
    }

    /// Returns whether this program may have standbys.
    pub(crate) fn is_on_for(&self, program: &Program) -> bool {
        self.is_on() && program.standby
    }

    /// Returns a standby that has not acted and is neither old nor of a replaced binary.
    pub(crate) fn take(&self, program: &Arc<Program>) -> Option<Process> {
        if !self.is_on_for(program) {
            return None;
        }
        let binary = Binary::of(&program.path);
        let now = Instant::now();
        loop {
            // A stale process is dropped outside the lock.
            let ready = {
                let mut state = self.lock();
                let State { functions, watcher } = &mut *state;
                let kept = functions
                    .entry(program.clone())
                    .or_insert_with(|| Kept::new(now));
                kept.last_used = now;
                if kept
                    .suspended
                    .as_ref()
                    .is_some_and(|suspended| suspended.binary != binary)
                {
                    kept.suspended = None;
                    kept.killed = None;
                }
                if kept.ready.last_mut()?.process.has_acted() {
                    // It stays in the list for the watcher; the other processes may have acted as
                    // well.
                    watcher.wake_by_ref();
                    return None;
                }
                kept.killed = None;
                kept.ready.pop()?
            };
            if ready.binary == binary && !ready.is_old(now) {
                return ready.process.into_process().ok();
            }
        }
    }

    /// Ends the standbys of all programs but those to keep, and removes their suspensions.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&Program) -> bool) {
        let mut state = self.lock();
        let ended = state.functions.extract_if(|program, _| !keep(program));
        let ended: Vec<_> = ended.collect();
        drop(state);
        // The processes are ended outside the lock.
        drop(ended);
    }

    /// Returns whether one more standby should be started.
    pub(crate) fn wants(&self, program: &Arc<Program>) -> bool {
        let state = self.lock();
        let kept = state.functions.get(program);
        kept.is_some_and(|kept| kept.has_room(self.per_function))
    }

    /// Reserves the start of one more standby, unless enough are ready or starting.
    pub(crate) fn opening<'a>(&'a self, program: &'a Arc<Program>) -> Option<Opening<'a>> {
        let mut state = self.lock();
        let kept = state.functions.get_mut(program)?;
        if !kept.has_room(self.per_function) {
            return None;
        }
        kept.pending += 1;
        drop(state);
        Some(Opening {
            standby: self,
            program,
            binary: Binary::of(&program.path),
        })
    }

    /// Ends old standbys and those of idle functions; returns the programs that need a new one.
    pub(crate) fn sweep(&self) -> Vec<Arc<Program>> {
        let now = Instant::now();
        let (mut unfit, mut wanting) = (Vec::new(), Vec::new());
        let mut state = self.lock();
        state.functions.retain(|program, kept| {
            let idle = now.duration_since(kept.last_used) > IDLE_AFTER;
            if kept.ready.iter().any(|ready| ready.is_old(now)) {
                kept.killed = None;
            }
            unfit.extend(kept.ready.extract_if(.., |ready| idle || ready.is_old(now)));
            if !idle && kept.has_room(self.per_function) {
                wanting.push(program.clone());
            }
            !idle || kept.pending > 0 || kept.suspended.is_some()
        });
        drop(state);
        wanting
    }

    /// Waits until standbys have acted, and returns them. Only one task may poll this at a time.
    pub(crate) fn poll_acted(&self, context: &mut Context<'_>) -> Poll<Vec<Acted>> {
        let mut state = self.lock();
        let State { functions, watcher } = &mut *state;
        watcher.clone_from(context.waker());
        let mut all = Vec::new();
        for (program, kept) in functions {
            let acted = kept
                .ready
                .extract_if(.., |ready| ready.process.poll_acted(context).is_ready());
            let before = all.len();
            all.extend(acted.map(|ready| Acted {
                program: Arc::clone(program),
                ready,
            }));
            kept.pending += all.len() - before;
        }
        if all.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(all)
    }

    /// Reaps a process that acted, and suspends the standby of its program.
    pub(crate) async fn dismiss(&self, acted: Acted) {
        let Acted { program, ready } = acted;
        let act = ready.process.dismiss().await;
        let mut state = self.lock();
        let Some(kept) = state.functions.get_mut(&program) else {
            return;
        };
        kept.pending = kept.pending.saturating_sub(1);
        if kept.suspended.is_some() {
            return;
        }
        // Processes that were killed at the same time count once.
        if !act.is_own() && kept.killed.is_none_or(|killed| ready.since < killed) {
            kept.killed = Some(Instant::now());
            return;
        }
        let binary = ready.binary;
        kept.suspended = Some(Suspended { act, binary });
        drop(state);
        instruments().standby_suspended(&program.name());
        tracing::warn!(
            program = %program.path.display(),
            "a process started ahead {act}: the program gets no standby until its file is replaced"
        );
    }

    /// Returns the standbys of each program in use, and the programs that get none.
    pub(crate) fn status(&self) -> Vec<StandbyStatus> {
        let state = self.lock();
        let functions = state.functions.iter();
        functions
            .map(|(program, kept)| StandbyStatus {
                program: Arc::clone(program),
                ready: kept.ready.len(),
                suspended: kept.suspended.as_ref().map(|it| it.act.to_string()),
            })
            .collect()
    }

    /// Returns whether there is nothing to sweep.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().functions.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Opening ===

impl Opening<'_> {
    /// Keeps a started process as a standby, and has it watched.
    pub(crate) fn fill(self, process: Waiting) {
        let mut ready = Ready {
            process,
            binary: self.binary,
            since: Instant::now(),
        };
        let mut state = self.standby.lock();
        let State { functions, watcher } = &mut *state;
        if let Some(kept) = functions.get_mut(self.program) {
            // Registers the watcher's waker directly, so that the watcher task need not run to do
            // so.
            if ready
                .process
                .poll_acted(&mut Context::from_waker(watcher))
                .is_ready()
            {
                watcher.wake_by_ref();
            }
            kept.ready.push(ready);
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.standby.lock().functions.get_mut(self.program) {
            kept.pending = kept.pending.saturating_sub(1);
        }
    }
}

// === impl Kept ===

impl Kept {
    fn new(now: Instant) -> Self {
        Self {
            ready: Vec::new(),
            pending: 0,
            last_used: now,
            killed: None,
            suspended: None,
        }
    }

    fn has_room(&self, per_function: usize) -> bool {
        self.suspended.is_none() && self.ready.len() + self.pending < per_function
    }
}

// === impl Ready ===

impl Ready {
    fn is_old(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= MAX_AGE
    }
}

// === impl Binary ===

impl Binary {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            modified: found.modified().ok(),
        })
    }
}
