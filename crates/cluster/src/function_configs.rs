//! Watches the `FunctionConfig` objects of one namespace.
//!
//! Their content goes into the table, and errors in them go into their status.
//!
//! ```text
//! watch ─→ declarations ─→ Configuration ─→ problems ─→ status patches
//! ```
//!
//! This needs `get`, `list`, `watch` and `patch` on `functionconfigs`, and `patch` on their status.
//! Without one of these permissions, the files still work and one warning names what is missing.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use runner_config::{Configuration, Declarations, Source};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{
    client::{WatchBackoff, watch_config},
    objects::FunctionConfig,
};

mod declare;
mod list;
mod status;
mod watch_error;

pub use declare::declaration;
pub use list::{ListError, ListedFunctionConfig, list_function_configs};
use status::{Report, Write};

/// Finalizer that earlier runners put on every object and that no other component removes.
const OLD_FINALIZER: &str = "config.porch.kpt.dev/functionconfig-function-runner";
/// Largest number of pending events that are applied with one new table.
const BATCH: usize = 512;

/// A guard for the watch of the objects; dropping it ends the watch.
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct FunctionConfigWatch {
    state: watch::Receiver<WatchState>,
    tasks: [JoinHandle<()>; 2],
}

/// The state of the watch of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The API server has not answered yet.
    Pending,
    /// The table contains every object.
    Synced,
    /// The kind does not exist or may not be listed, for this reason; only the files are used.
    Unavailable(String),
}

struct Reconciler {
    declarations: Declarations,
    client: Client,
    /// Whether the CRD has a field for the runner's generation; checked after each list.
    has_generation: bool,
    namespace: String,
    state: watch::Sender<WatchState>,
    writes: mpsc::UnboundedSender<Write>,
    known: BTreeMap<Source, KnownObject>,
    /// Objects of an incomplete list; they replace all known objects when it is complete.
    listed: Vec<DynamicObject>,
    /// Text of the last logged error, until the watch works again.
    logged_error: Option<String>,
}

/// The last observed state of an object, and the last report in its status.
struct KnownObject {
    uid: Option<String>,
    generation: Option<i64>,
    found: status::FoundStatus,
    reported: Option<Report>,
}

/// Returns an API client for untyped objects.
///
/// Objects are deserialized one by one, so that one malformed object does not hide the others.
fn api(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(
        client,
        namespace,
        &ApiResource::erase::<FunctionConfig>(&()),
    )
}

/// Watches the `FunctionConfig` objects of a namespace until the guard is dropped.
///
/// Their declarations become part of the configuration, and its errors part of their status.
pub fn watch_function_configs(
    configuration: &Configuration,
    client: Client,
    namespace: &str,
) -> FunctionConfigWatch {
    let api = api(client.clone(), namespace);
    let (state, states) = watch::channel(WatchState::Pending);
    let (writes, to_write) = mpsc::unbounded_channel();
    let tables = configuration.watch();
    let reconciler = Reconciler {
        declarations: configuration.declarations(),
        client,
        has_generation: true,
        namespace: namespace.to_owned(),
        state,
        writes,
        known: BTreeMap::new(),
        listed: Vec::new(),
        logged_error: None,
    };
    let events = watcher(api.clone(), watch_config()).backoff(WatchBackoff::default());
    let tasks = [
        tokio::spawn(reconciler.run(events, tables)),
        tokio::spawn(status::write_all(api, to_write)),
    ];
    FunctionConfigWatch {
        state: states,
        tasks,
    }
}

// === impl FunctionConfigWatch ===

impl FunctionConfigWatch {
    /// Returns a receiver of the state of the watch.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<WatchState> {
        self.state.clone()
    }

    /// Waits until a task of the watch has ended, which only a defect causes. Returns the reason.
    pub async fn ended(&mut self) -> String {
        let [reconciler, writer] = &mut self.tasks;
        let ended = tokio::select! {
            ended = reconciler => ended,
            ended = writer => ended,
        };
        let why = ended.map_or_else(|error| error.to_string(), |()| "it returned".to_owned());
        format!("the watch of FunctionConfig objects has ended: {why}")
    }
}

impl Drop for FunctionConfigWatch {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

// === impl Reconciler ===

impl Reconciler {
    async fn run(
        mut self,
        events: impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Send,
        tables: watch::Receiver<u64>,
    ) {
        let tables = tokio_stream::wrappers::WatchStream::from_changes(tables);
        // A new table alone can change a status, for example when a binary appears or an older
        // object is removed.
        let mut turns = std::pin::pin!(stream::select(
            events.ready_chunks(BATCH),
            tables.map(|_| Vec::new()),
        ));
        while let Some(events) = turns.next().await {
            let mut changed = BTreeMap::new();
            let listed = |event: &watcher::Result<_>| matches!(event, Ok(watcher::Event::InitDone));
            let listed = events.iter().any(listed);
            for event in events {
                match event {
                    Ok(event) => self.take(event, &mut changed),
                    Err(error) => self.fail(&error),
                }
            }
            self.apply(changed);
            // Must come after `apply`: evaluations that wait for the first list then use the table.
            if *self.state.borrow() != WatchState::Pending {
                self.declarations.complete();
            }
            if listed {
                self.has_generation = status::has_generation(&self.client).await;
            }
            self.report();
        }
    }

    /// Adds the changes of an event to `changed`; `None` is a removed object.
    fn take(
        &mut self,
        event: watcher::Event<DynamicObject>,
        changed: &mut BTreeMap<Source, Option<DynamicObject>>,
    ) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => self.listed.push(object),
            watcher::Event::InitDone => {
                changed.extend(self.known.keys().map(|gone| (gone.clone(), None)));
                for object in std::mem::take(&mut self.listed) {
                    changed.insert(declare::source(&object), self.admit(object));
                }
                self.recover();
            }
            watcher::Event::Apply(object) => {
                changed.insert(declare::source(&object), self.admit(object));
                self.recover();
            }
            watcher::Event::Delete(object) => {
                changed.insert(declare::source(&object), None);
                self.recover();
            }
        }
    }

    /// Returns the object unless it is being deleted; then removes the old finalizer from it.
    fn admit(&self, object: DynamicObject) -> Option<DynamicObject> {
        if object.metadata.deletion_timestamp.is_none() {
            return Some(object);
        }
        if object
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == OLD_FINALIZER)
        {
            let _ = self.writes.send(Write::release(&object));
        }
        None
    }

    fn apply(&mut self, changed: BTreeMap<Source, Option<DynamicObject>>) {
        let mut declared = Vec::new();
        for (source, object) in changed {
            let Some(object) = object else {
                self.known.remove(&source);
                declared.push((source, None));
                continue;
            };
            declared.push((source.clone(), Some(declaration(&object))));
            let reported = self
                .known
                .remove(&source)
                .filter(|known| known.uid == object.metadata.uid)
                .and_then(|known| known.reported);
            let known = KnownObject {
                uid: object.metadata.uid.clone(),
                generation: object.metadata.generation,
                found: status::FoundStatus::of(&object),
                reported,
            };
            self.known.insert(source, known);
        }
        self.declarations.apply(declared);
    }

    /// Writes the status of objects whose status differs from the result.
    fn report(&mut self) {
        let mut errors = self.declarations.errors();
        for (source, known) in &mut self.known {
            let report = Report {
                generation: known.generation.filter(|_| self.has_generation),
                error: errors.remove(source),
            };
            if known.reported.as_ref() == Some(&report) {
                continue;
            }
            // The first report is skipped if the status already has it, written by another replica
            // or before a restart. Later reports ignore the current status; otherwise two replicas
            // with different results would overwrite each other endlessly.
            if known.reported.is_some() || !known.found.has(&report) {
                let _ = self
                    .writes
                    .send(Write::status(source, known.uid.as_deref(), &report));
            }
            self.declarations
                .count_change(source, report.error.is_none());
            known.reported = Some(report);
        }
    }

    fn fail(&mut self, error: &watcher::Error) {
        let why = watch_error::explain(error, &self.namespace);
        if watch_error::is_lasting(error) {
            self.state
                .send_replace(WatchState::Unavailable(why.clone()));
        }
        // A watch that ends in the normal way is restarted at once and not logged.
        if self.logged_error.as_ref() != Some(&why) && !watch_error::is_routine(error) {
            tracing::warn!("{why}");
            self.logged_error = Some(why);
        }
    }

    /// Marks the watch as working; called for every event, since a watch may resume without a list.
    fn recover(&mut self) {
        if self.logged_error.take().is_some() {
            tracing::info!(
                namespace = self.namespace,
                "FunctionConfig objects are followed again"
            );
        }
        self.state.send_if_modified(|state| {
            std::mem::replace(state, WatchState::Synced) != WatchState::Synced
        });
    }
}

#[cfg(test)]
mod tests;
