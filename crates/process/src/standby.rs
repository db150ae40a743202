//! Processes started before their request arrives.
//!
//! A KRM function reads its input to the end before it acts, so its process can be started, load
//! and initialise while nobody waits. Each process still serves exactly one evaluation. A function
//! that was used lately keeps some ready; an idle one keeps none.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use crate::{Program, process::Process};

/// An older one is replaced: what it read when it started may have changed.
const MAX_AGE: Duration = Duration::from_secs(60);

/// A function that was not used for this long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(300);

/// The processes that wait for a request.
pub(crate) struct Standby {
    functions: Mutex<HashMap<Arc<Program>, Kept>>,
    per_function: usize,
}

struct Kept {
    ready: Vec<Ready>,
    starting: usize,
    last_used: Instant,
}

struct Ready {
    process: Process,
    binary: Option<Binary>,
    since: Instant,
}

/// Which file the process was started from: a replaced binary makes its standbys stale.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Binary {
    device: u64,
    inode: u64,
    modified: Option<SystemTime>,
}

/// Leave to start one more process for a function.
pub(crate) struct Opening<'a> {
    standby: &'a Standby,
    program: &'a Arc<Program>,
    binary: Option<Binary>,
}

// === impl Standby ===

impl Standby {
    /// Keeps up to this many ready for each function; none if 0.
    pub(crate) fn new(per_function: usize) -> Self {
        Self {
            functions: Mutex::default(),
            per_function,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.per_function > 0
    }

    /// A process that waits, if one is fit.
    pub(crate) fn take(&self, program: &Arc<Program>) -> Option<Process> {
        if !self.is_on() {
            return None;
        }
        let binary = Binary::of(&program.path);
        let now = Instant::now();
        loop {
            // Each is dropped outside the lock.
            let ready = {
                let mut functions = self.lock();
                let kept = functions
                    .entry(program.clone())
                    .or_insert_with(|| Kept::new(now));
                kept.last_used = now;
                kept.ready.pop()?
            };
            if ready.binary == binary && ready.is_fit(now) {
                return Some(ready.process);
            }
        }
    }

    /// Whether one more should be started.
    pub(crate) fn wants(&self, program: &Arc<Program>) -> bool {
        let functions = self.lock();
        let kept = functions.get(program);
        kept.is_some_and(|kept| kept.has_room(self.per_function))
    }

    /// Leave to start one more, unless enough are ready or starting.
    pub(crate) fn opening<'a>(&'a self, program: &'a Arc<Program>) -> Option<Opening<'a>> {
        let mut functions = self.lock();
        let kept = functions.get_mut(program)?;
        if !kept.has_room(self.per_function) {
            return None;
        }
        kept.starting += 1;
        drop(functions);
        Some(Opening {
            standby: self,
            program,
            binary: Binary::of(&program.path),
        })
    }

    /// Drops what is dead, old or no longer used; returns the functions that want a new one.
    pub(crate) fn sweep(&self) -> Vec<Arc<Program>> {
        let now = Instant::now();
        let (mut unfit, mut wanting) = (Vec::new(), Vec::new());
        self.lock().retain(|program, kept| {
            let idle = now.duration_since(kept.last_used) > IDLE_AFTER;
            unfit.extend(
                kept.ready
                    .extract_if(.., |ready| idle || !ready.is_fit(now)),
            );
            if !idle && kept.has_room(self.per_function) {
                wanting.push(program.clone());
            }
            !idle || kept.starting > 0
        });
        wanting
    }

    /// How many wait for each program in use.
    pub(crate) fn ready(&self) -> Vec<(Arc<Program>, usize)> {
        let functions = self.lock();
        let ready = functions.iter();
        ready
            .map(|(program, kept)| (Arc::clone(program), kept.ready.len()))
            .collect()
    }

    /// Whether there is anything to sweep.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<Program>, Kept>> {
        self.functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Opening ===

impl Opening<'_> {
    /// Keeps a process that was started.
    pub(crate) fn fill(self, process: Process) {
        let ready = Ready {
            process,
            binary: self.binary,
            since: Instant::now(),
        };
        if let Some(kept) = self.standby.lock().get_mut(self.program) {
            kept.ready.push(ready);
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.standby.lock().get_mut(self.program) {
            kept.starting -= 1;
        }
    }
}

// === impl Kept ===

impl Kept {
    fn new(now: Instant) -> Self {
        Self {
            ready: Vec::new(),
            starting: 0,
            last_used: now,
        }
    }

    fn has_room(&self, per_function: usize) -> bool {
        self.ready.len() + self.starting < per_function
    }
}

// === impl Ready ===

impl Ready {
    fn is_fit(&self, now: Instant) -> bool {
        now.duration_since(self.since) < MAX_AGE && !self.process.has_ended()
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
