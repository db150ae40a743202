//! Holds the current table and the sources from which it is rebuilt.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use runner_core::{EvaluationError, Function, Reason};
use tokio::{
    sync::watch,
    time::{Duration, Instant, timeout_at},
};

use crate::{
    ConfigError, Declaration, FileOptions, Problem, Severity, Source, Table,
    files::{ExecEntry, File, Parsed, PodCacheEntry},
    table::Inputs,
};

mod declarations;
mod metrics;
mod reload;

pub use declarations::Declarations;
pub use reload::{Reload, ReloadError};

/// Time from the start of the process for which evaluations and readiness wait for the first list
/// of `FunctionConfig` objects.
pub const OBJECTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay after which a caller is asked to retry while the configuration is not known (1 s).
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The configuration in use. Cheap to clone; every clone sees the same table.
#[derive(Clone, Debug)]
pub struct Configuration {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: FileOptions,
    table: ArcSwap<Table>,
    /// The sources. Locked while a table is built and published, never while one is read.
    sources: Mutex<Sources>,
    revision: watch::Sender<u64>,
    loaded: Instant,
    /// Whether objects are watched and their first list is still outstanding.
    objects_pending: watch::Sender<bool>,
}

/// The last valid content of each source, and the error of its newest content.
#[derive(Debug, Default)]
struct Sources {
    config: FileState<ExecEntry>,
    pod_cache: FileState<PodCacheEntry>,
    objects: BTreeMap<Source, Declaration>,
}

#[derive(Debug)]
struct FileState<Entry> {
    /// Last valid text of the file.
    text: Option<String>,
    good: Parsed<Entry>,
    bad: Option<Problem>,
}

/// The result of reading a source again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Unchanged,
    Applied,
    Rejected,
}

// === impl Table ===

impl Table {
    /// Builds a table from the current files and the given objects, without following changes.
    pub fn of(
        options: &FileOptions,
        declarations: impl IntoIterator<Item = Declaration>,
    ) -> Result<Self, ConfigError> {
        let mut sources = Sources::read(options)?;
        sources.objects = by_source(declarations);
        Ok(sources.compile(options))
    }
}

// === impl Configuration ===

impl Configuration {
    /// Reads both files.
    ///
    /// # Errors
    /// Fails if a file is invalid. Later, when a file changes to invalid content, the last valid
    /// content stays in use instead.
    pub fn load(options: FileOptions) -> Result<Self, ConfigError> {
        let sources = Sources::read(&options)?;
        let table = sources.compile(&options);
        log_new(&[], table.problems());
        let shared = Shared {
            options,
            table: ArcSwap::from_pointee(table),
            sources: Mutex::new(sources),
            revision: watch::Sender::new(0),
            loaded: Instant::now(),
            objects_pending: watch::Sender::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Returns the current table. Callers should keep it for one evaluation, not longer.
    #[must_use]
    pub fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.shared.table.load()
    }

    /// Returns a receiver that is notified of every new table.
    ///
    /// The value counts the tables; the table itself is in [`Self::table`].
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// Waits until the table is complete.
    ///
    /// If `FunctionConfig` objects are watched, that is after their first list or after a lasting
    /// refusal of the API server.
    pub async fn completed(&self) {
        let mut pending = self.shared.objects_pending.subscribe();
        // The sender lives in `self`.
        let _ = pending.wait_for(|pending| !pending).await;
    }

    /// Waits as [`Self::completed`] does, but only until `deadline` and at most [`OBJECTS_TIMEOUT`]
    /// from the start of the process; returns whether the table is complete.
    pub async fn completes_by(&self, deadline: Option<std::time::Instant>) -> bool {
        let mut limit = self.shared.loaded + OBJECTS_TIMEOUT;
        if let Some(deadline) = deadline {
            limit = limit.min(deadline.into());
        }
        timeout_at(limit, self.completed()).await.is_ok()
    }

    /// Waits as [`Self::completes_by`] does until the configuration of a function is known.
    ///
    /// # Errors
    /// `KUBERNETES_UNREACHABLE` while the API server has not answered since the start: a
    /// `FunctionConfig` object may configure the function differently.
    pub async fn complete_for(
        &self,
        function: &Function,
        deadline: Option<std::time::Instant>,
    ) -> Result<(), EvaluationError> {
        if self.completes_by(deadline).await {
            return Ok(());
        }
        let image = function.image.to_string();
        let error = EvaluationError::new(
            Reason::KubernetesUnreachable,
            format!(
                "function {image:?} cannot be evaluated yet: the Kubernetes API server has not \
                 answered since this function runner started, so the FunctionConfig objects are \
                 not known"
            ),
        );
        Err(error.with("image", image).retry_in(RETRY_DELAY))
    }

    /// Replaces the declarations of all objects.
    pub fn replace_objects(&self, declarations: impl IntoIterator<Item = Declaration>) {
        let objects = by_source(declarations);
        let mut sources = self.sources();
        if sources.objects != objects {
            sources.objects = objects;
            self.swap(&sources);
        }
    }

    /// Reads a file again and builds a new table if its content changed.
    fn reload(&self, file: File) -> Outcome {
        let options = &self.shared.options;
        let mut sources = self.sources();
        let outcome = match file {
            File::Config => {
                let parse = |text: &str| options.parse_config(text);
                sources
                    .config
                    .update(options.read(file), parse, &options.source(file))
            }
            File::PodCache => {
                let parse = |text: &str| options.parse_pod_cache(text);
                sources
                    .pod_cache
                    .update(options.read(file), parse, &options.source(file))
            }
        };
        if outcome != Outcome::Unchanged {
            self.swap(&sources);
        }
        outcome
    }

    /// Rebuilds the table from the same sources, since binaries may have been added or removed.
    pub(crate) fn recheck_binaries(&self) {
        let sources = self.sources();
        let table = sources.compile(&self.shared.options);
        if table.problems() != self.table().problems() {
            self.publish(table);
        }
    }

    pub(crate) fn options(&self) -> &FileOptions {
        &self.shared.options
    }

    fn swap(&self, sources: &Sources) {
        self.publish(sources.compile(&self.shared.options));
    }

    fn publish(&self, table: Table) {
        let table = Arc::new(table);
        let before = self.shared.table.swap(table.clone());
        log_new(before.problems(), table.problems());
        self.shared.revision.send_modify(|revision| *revision += 1);
    }

    /// Locks the sources, even after a panic.
    ///
    /// A panic while a table is built leaves the sources intact, and the next build uses them.
    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.shared
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Sources ===

impl Sources {
    fn read(options: &FileOptions) -> Result<Self, ConfigError> {
        let mut sources = Sources::default();
        if let Some(text) = options.read(File::Config)? {
            sources.config = FileState::good(options.parse_config(&text)?, Some(text));
        }
        if let Some(text) = options.read(File::PodCache)? {
            sources.pod_cache = FileState::good(options.parse_pod_cache(&text)?, Some(text));
        }
        Ok(sources)
    }

    fn compile(&self, options: &FileOptions) -> Table {
        let files = self.config.problems().chain(self.pod_cache.problems());
        Table::build(Inputs {
            functions_dir: &options.functions_dir,
            default_prefix: &options.default_prefix,
            exec: &self.config.good.entries,
            pod_cache: &self.pod_cache.good.entries,
            declarations: self.objects.values().collect(),
            problems: files.cloned().collect(),
            binaries: options.binaries,
        })
    }
}

// === impl FileState ===

impl<Entry> FileState<Entry> {
    fn good(parsed: Parsed<Entry>, text: Option<String>) -> Self {
        Self {
            text,
            good: parsed,
            bad: None,
        }
    }

    fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.good.problems.iter().chain(&self.bad)
    }

    fn update(
        &mut self,
        read: Result<Option<String>, ConfigError>,
        parse: impl FnOnce(&str) -> Result<Parsed<Entry>, ConfigError>,
        file: &Source,
    ) -> Outcome {
        let parsed = match read {
            // An invalid file is parsed again even if it did not change: the cause of the error
            // may be outside the file.
            Ok(text) if text == self.text && self.bad.is_none() => return Outcome::Unchanged,
            Ok(text) => {
                let parsed = text.as_deref().map_or_else(|| Ok(Parsed::default()), parse);
                parsed.map(|parsed| (parsed, text))
            }
            Err(error) => Err(error),
        };
        match parsed {
            Ok((parsed, text)) => {
                *self = Self::good(parsed, text);
                Outcome::Applied
            }
            Err(error) => {
                let problem = Some(error.problem(file));
                if self.bad == problem {
                    return Outcome::Unchanged;
                }
                self.bad = problem;
                Outcome::Rejected
            }
        }
    }
}

impl<Entry> Default for FileState<Entry> {
    fn default() -> Self {
        Self::good(Parsed::default(), None)
    }
}

fn by_source(declarations: impl IntoIterator<Item = Declaration>) -> BTreeMap<Source, Declaration> {
    declarations
        .into_iter()
        .map(|declaration| (declaration.source.clone(), declaration))
        .collect()
}

/// Logs problems that the previous table did not have.
fn log_new(before: &[Problem], now: &[Problem]) {
    for problem in now
        .iter()
        .filter(|problem| before.binary_search(problem).is_err())
    {
        let Problem {
            source,
            message,
            severity,
        } = problem;
        match severity {
            Severity::Error => tracing::error!(%source, "configuration: {message}"),
            Severity::Warning => tracing::warn!(%source, "configuration: {message}"),
        }
    }
}

#[cfg(test)]
mod tests;
