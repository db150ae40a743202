//! Standbys: processes started before their request arrives.
//!
//! A KRM function reads its input to the end before it acts, so its process can start, load and
//! initialise while no caller waits. Each process still serves exactly one evaluation. A recently
//! used function keeps some standbys ready; an idle function keeps none.
//!
//! Standbys are watched. A program whose process ends or writes before its input arrives gets no
//! standby until its binary is replaced: each standby would act without a request. An end by
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
    process::{EarlyAct, Process, StandbyProcess},
};

/// Age (60 s) at which a standby is replaced: files that it read at its start may have changed.
const MAX_STANDBY_AGE: Duration = Duration::from_secs(60);

/// Time (300 s) without evaluations after which a function is idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

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
pub(crate) struct StandbySet {
    state: Mutex<State>,
    per_program: usize,
}

struct State {
    programs: HashMap<Arc<Program>, ProgramStandbys>,
    /// Waker of the task that polls [`StandbySet::poll_acted`].
    watcher: Waker,
}

/// The standbys of one program, and whether it may have more.
struct ProgramStandbys {
    ready: Vec<ReadyStandby>,
    /// Number of processes being started, or being dismissed after an early act.
    pending: usize,
    last_used: Instant,
    /// Time at which a process was ended by SIGKILL or SIGTERM.
    ///
    /// Reset when a later process lives until its input arrives or until it is [`MAX_STANDBY_AGE`]
    /// old.
    killed_at: Option<Instant>,
    suspended: Option<Suspension>,
}

/// The early act for which a program gets no standby, and the binary that did it.
struct Suspension {
    act: EarlyAct,
    binary: Option<BinaryIdentity>,
}

/// A standby that waits for its input.
struct ReadyStandby {
    process: StandbyProcess,
    binary: Option<BinaryIdentity>,
    started: Instant,
}

/// A process that acted before its input arrived.
pub(crate) struct ActedStandby {
    program: Arc<Program>,
    ready: ReadyStandby,
}

/// Identity of the file a process was started from: a replaced binary makes its standbys stale.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BinaryIdentity {
    device: u64,
    inode: u64,
    modified: Option<SystemTime>,
}

/// A reservation to start one more standby of a program.
pub(crate) struct StartReservation<'a> {
    set: &'a StandbySet,
    program: &'a Arc<Program>,
    binary: Option<BinaryIdentity>,
}

// === impl StandbySet ===

impl StandbySet {
    /// Creates an empty set that keeps up to `per_program` standbys for each program.
    ///
    /// 0 turns standby off.
    pub(crate) fn new(per_program: usize) -> Self {
        let state = State {
            programs: HashMap::new(),
            watcher: Waker::noop().clone(),
        };
        Self {
            state: Mutex::new(state),
            per_program,
        }
    }

    /// Returns whether any program may have standbys.
    pub(crate) fn is_enabled(&self) -> bool {
        self.per_program > 0
    }

    /// Returns whether this program may have standbys.
    pub(crate) fn is_enabled_for(&self, program: &Program) -> bool {
        self.is_enabled() && program.standby
    }

    /// Returns a standby that has not acted and is neither old nor of a replaced binary.
    pub(crate) fn take(&self, program: &Arc<Program>) -> Option<Process> {
        if !self.is_enabled_for(program) {
            return None;
        }
        let binary = BinaryIdentity::read(&program.path);
        let now = Instant::now();
        loop {
            // A stale process is dropped outside the lock.
            let ready = {
                let mut state = self.lock();
                let State { programs, watcher } = &mut *state;
                let standbys = programs
                    .entry(program.clone())
                    .or_insert_with(|| ProgramStandbys::new(now));
                standbys.last_used = now;
                if standbys
                    .suspended
                    .as_ref()
                    .is_some_and(|suspended| suspended.binary != binary)
                {
                    standbys.suspended = None;
                    standbys.killed_at = None;
                }
                if standbys.ready.last_mut()?.process.has_acted() {
                    // The process stays in the list for the watcher; the others may have acted as
                    // well.
                    watcher.wake_by_ref();
                    return None;
                }
                standbys.killed_at = None;
                standbys.ready.pop()?
            };
            if ready.binary == binary && !ready.is_old(now) {
                return ready.process.into_process().ok();
            }
        }
    }

    /// Ends the standbys of all programs except those for which `keep` returns true, and removes
    /// their suspensions.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&Program) -> bool) {
        let mut state = self.lock();
        let ended = state.programs.extract_if(|program, _| !keep(program));
        let ended: Vec<_> = ended.collect();
        drop(state);
        // The processes are ended outside the lock.
        drop(ended);
    }

    /// Returns whether a program in use has fewer standbys than it should have.
    pub(crate) fn needs(&self, program: &Arc<Program>) -> bool {
        let state = self.lock();
        let standbys = state.programs.get(program);
        standbys.is_some_and(|standbys| standbys.needs_another(self.per_program))
    }

    /// Reserves the start of one more standby, unless enough are ready or starting.
    pub(crate) fn reserve<'a>(&'a self, program: &'a Arc<Program>) -> Option<StartReservation<'a>> {
        let mut state = self.lock();
        let standbys = state.programs.get_mut(program)?;
        if !standbys.needs_another(self.per_program) {
            return None;
        }
        standbys.pending += 1;
        drop(state);
        Some(StartReservation {
            set: self,
            program,
            binary: BinaryIdentity::read(&program.path),
        })
    }

    /// Ends old standbys and those of idle programs; returns the programs that need a new one.
    pub(crate) fn sweep(&self) -> Vec<Arc<Program>> {
        let now = Instant::now();
        let (mut ended, mut incomplete) = (Vec::new(), Vec::new());
        let mut state = self.lock();
        state.programs.retain(|program, standbys| {
            let is_idle = now.duration_since(standbys.last_used) > IDLE_TIMEOUT;
            if standbys.ready.iter().any(|ready| ready.is_old(now)) {
                standbys.killed_at = None;
            }
            ended.extend(
                standbys
                    .ready
                    .extract_if(.., |ready| is_idle || ready.is_old(now)),
            );
            if !is_idle && standbys.needs_another(self.per_program) {
                incomplete.push(program.clone());
            }
            !is_idle || standbys.pending > 0 || standbys.suspended.is_some()
        });
        drop(state);
        incomplete
    }

    /// Waits until standbys have acted, and returns them. Only one task may poll this at a time.
    pub(crate) fn poll_acted(&self, context: &mut Context<'_>) -> Poll<Vec<ActedStandby>> {
        let mut state = self.lock();
        let State { programs, watcher } = &mut *state;
        watcher.clone_from(context.waker());
        let mut all = Vec::new();
        for (program, standbys) in programs {
            let acted = standbys
                .ready
                .extract_if(.., |ready| ready.process.poll_acted(context).is_ready());
            let before = all.len();
            all.extend(acted.map(|ready| ActedStandby {
                program: Arc::clone(program),
                ready,
            }));
            standbys.pending += all.len() - before;
        }
        if all.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(all)
    }

    /// Reaps a process that acted, and suspends the standby of its program.
    pub(crate) async fn dismiss(&self, acted: ActedStandby) {
        let ActedStandby { program, ready } = acted;
        let act = ready.process.dismiss().await;
        let mut state = self.lock();
        let Some(standbys) = state.programs.get_mut(&program) else {
            return;
        };
        standbys.pending = standbys.pending.saturating_sub(1);
        if standbys.suspended.is_some() {
            return;
        }
        // Processes that were killed at the same time count once.
        if act.may_be_external()
            && standbys
                .killed_at
                .is_none_or(|killed_at| ready.started < killed_at)
        {
            standbys.killed_at = Some(Instant::now());
            return;
        }
        let binary = ready.binary;
        standbys.suspended = Some(Suspension { act, binary });
        drop(state);
        instruments().record_standby_suspension(&program.name());
        tracing::warn!(
            program = %program.path.display(),
            "a standby {act}: the program gets no standby until its file is replaced"
        );
    }

    /// Returns the standbys of each program in use, and the programs that get none.
    pub(crate) fn status(&self) -> Vec<StandbyStatus> {
        let state = self.lock();
        let programs = state.programs.iter();
        programs
            .map(|(program, standbys)| StandbyStatus {
                program: Arc::clone(program),
                ready: standbys.ready.len(),
                suspended: standbys
                    .suspended
                    .as_ref()
                    .map(|suspension| suspension.act.to_string()),
            })
            .collect()
    }

    /// Returns whether no program is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().programs.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StartReservation ===

impl StartReservation<'_> {
    /// Adds a started process to the standbys of the program, and watches it.
    pub(crate) fn add(self, process: StandbyProcess) {
        let mut ready = ReadyStandby {
            process,
            binary: self.binary,
            started: Instant::now(),
        };
        let mut state = self.set.lock();
        let State { programs, watcher } = &mut *state;
        if let Some(standbys) = programs.get_mut(self.program) {
            // Registers the watcher's waker directly, so that the watcher task need not run to do
            // so.
            if ready
                .process
                .poll_acted(&mut Context::from_waker(watcher))
                .is_ready()
            {
                watcher.wake_by_ref();
            }
            standbys.ready.push(ready);
        }
    }
}

impl Drop for StartReservation<'_> {
    fn drop(&mut self) {
        if let Some(standbys) = self.set.lock().programs.get_mut(self.program) {
            standbys.pending = standbys.pending.saturating_sub(1);
        }
    }
}

// === impl ProgramStandbys ===

impl ProgramStandbys {
    fn new(now: Instant) -> Self {
        Self {
            ready: Vec::new(),
            pending: 0,
            last_used: now,
            killed_at: None,
            suspended: None,
        }
    }

    fn needs_another(&self, per_program: usize) -> bool {
        self.suspended.is_none() && self.ready.len() + self.pending < per_program
    }
}

// === impl ReadyStandby ===

impl ReadyStandby {
    fn is_old(&self, now: Instant) -> bool {
        now.duration_since(self.started) >= MAX_STANDBY_AGE
    }
}

// === impl BinaryIdentity ===

impl BinaryIdentity {
    fn read(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: metadata.modified().ok(),
        })
    }
}
