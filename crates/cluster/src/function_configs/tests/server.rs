//! An in-memory API server for one kind: list, watch and merge patch, with scripted faults.
//!
//! Any other request needs a permission that the runner does not have, and fails the test.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

const BASE: &str = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/fns/functionconfigs";

/// A request that a test can make fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    List,
    Watch,
    Patch,
    PatchStatus,
}

#[derive(Clone)]
pub(super) struct ApiServer {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) objects: BTreeMap<String, Value>,
    /// All received patches: verb, name and body.
    pub(super) patches: Vec<(Verb, String, Value)>,
    pub(super) lists: usize,
    /// Whether the CRD lacks the field for the runner's generation.
    pub(super) without_generation: bool,
    version: u64,
    log: Vec<(u64, String)>,
    watchers: Vec<mpsc::UnboundedSender<String>>,
    /// Error codes to answer with; code 0 is a broken connection.
    refusals: BTreeMap<Verb, u16>,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn new() -> Self {
        Self {
            state: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        kube::Client::new(service, "fns")
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Creates an object or changes its spec, as `kubectl apply` would.
    pub(super) fn put(&self, name: &str, spec: Value) {
        let mut state = self.state();
        let created = state.objects.len();
        let mut object = state.objects.get(name).cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "config.porch.kpt.dev/v1alpha1",
                "kind": "FunctionConfig",
                "metadata": {
                    "name": name,
                    "namespace": "fns",
                    "uid": format!("uid-{name}-{}", state.version),
                    "generation": 0,
                    "creationTimestamp": format!("2026-01-01T00:{:02}:{:02}Z", created / 60, created % 60),
                },
            })
        });
        let generation = object["metadata"]["generation"].as_i64().unwrap() + 1;
        object["metadata"]["generation"] = json!(generation);
        object["spec"] = spec;
        state.store(name, object);
        self.changed.send_replace(());
    }

    /// Changes anything else about an object.
    pub(super) fn touch(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let mut object = state.objects[name].clone();
        change(&mut object);
        state.store(name, object);
        self.changed.send_replace(());
    }

    /// Deletes an object, or only marks it if it has a finalizer.
    pub(super) fn delete(&self, name: &str) {
        self.touch(name, |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        });
    }

    pub(super) fn refuse(&self, verb: Verb, code: u16) {
        self.state().refusals.insert(verb, code);
    }

    pub(super) fn permit(&self, verb: Verb) {
        self.state().refusals.remove(&verb);
    }

    /// Ends every watch, as a restart does.
    pub(super) fn drop_watches(&self) {
        self.state().watchers.clear();
    }

    /// Ends every watch with code 410 and forgets past events, so that a new list is needed.
    pub(super) fn compact(&self) {
        let mut state = self.state();
        let gone = json!({"type": "ERROR", "object": failure(410)}).to_string();
        for watcher in state.watchers.drain(..) {
            let _ = watcher.send(gone.clone());
        }
        state.log.clear();
    }

    /// Waits until the server's state satisfies the condition.
    pub(super) async fn until(&self, condition: impl Fn(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        let wait = async {
            while !condition(&self.state()) {
                changes.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(300), wait)
            .await
            .is_err()
        {
            let state = self.state();
            panic!("it never came: {:#?} {:#?}", state.objects, state.patches);
        }
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let query = parts.uri.query().unwrap_or_default();
        if parts.uri.path() == "/openapi/v3/apis/config.porch.kpt.dev/v1alpha1" {
            return Ok(self.state().describe());
        }
        let name = parts
            .uri
            .path()
            .strip_prefix(BASE)
            .expect("only our objects are asked for");
        let name = name.trim_start_matches('/');
        let (verb, name) = match (&parts.method, name.strip_suffix("/status")) {
            (&Method::GET, None) if name.is_empty() && query.contains("watch=true") => {
                (Verb::Watch, "")
            }
            (&Method::GET, None) if name.is_empty() => (Verb::List, ""),
            (&Method::PATCH, Some(name)) => (Verb::PatchStatus, name),
            (&Method::PATCH, None) => (Verb::Patch, name),
            (method, _) => panic!("no permission for {method} {}", parts.uri),
        };
        let mut state = self.state();
        state.lists += usize::from(verb == Verb::List);
        let answer = match state.refusals.get(&verb) {
            Some(0) => return Err(std::io::Error::other("connection refused")),
            Some(code) => Err(*code),
            None => match verb {
                Verb::List => Ok(state.list()),
                Verb::Watch => return Ok(state.watch(query)),
                Verb::Patch | Verb::PatchStatus => {
                    state.patch(verb, name, serde_json::from_slice(&body).unwrap())
                }
            },
        };
        drop(state);
        self.changed.send_replace(());
        let (code, body) = match answer {
            Ok(body) => (200, body),
            Err(code) => (code, failure(code)),
        };
        let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
        Ok(Response::builder().status(code).body(body).unwrap())
    }
}

// === impl State ===

impl State {
    fn describe(&self) -> Answer {
        let mut fields = json!({"error": {"type": "string"}});
        if !self.without_generation {
            fields["functionRunnerObservedGeneration"] = json!({"type": "integer"});
        }
        let document = json!({"components": {"schemas": {"dev.kpt.porch.FunctionConfig": {
            "x-kubernetes-group-version-kind": [{"kind": "FunctionConfig"}],
            "properties": {"status": {"properties": fields}},
        }}}});
        Response::new(Full::new(Bytes::from(document.to_string())).boxed_unsync())
    }

    fn list(&self) -> Value {
        json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "FunctionConfigList",
            "metadata": {"resourceVersion": self.version.to_string()},
            "items": self.objects.values().collect::<Vec<_>>(),
        })
    }

    fn watch(&mut self, query: &str) -> Answer {
        let from = query
            .split('&')
            .find_map(|part| part.strip_prefix("resourceVersion="));
        let from: u64 = from.unwrap().parse().unwrap();
        let (events, receiver) = mpsc::unbounded_channel();
        for (_, event) in self.log.iter().filter(|(version, _)| *version > from) {
            events.send(event.clone()).unwrap();
        }
        self.watchers.push(events);
        let lines = stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|event| (event + "\n", receiver))
        });
        let frames = lines.map(|line| Ok(http_body::Frame::data(Bytes::from(line))));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    fn patch(&mut self, verb: Verb, name: &str, patch: Value) -> Result<Value, u16> {
        let Some(mut object) = self.objects.get(name).cloned() else {
            return Err(404);
        };
        for precondition in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][precondition];
            if !wanted.is_null() && *wanted != object["metadata"][precondition] {
                return Err(409);
            }
        }
        merge(&mut object, &patch);
        self.patches.push((verb, name.to_owned(), patch));
        self.store(name, object.clone());
        Ok(object)
    }

    fn store(&mut self, name: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        let known = self.objects.contains_key(name);
        let kind = if object["metadata"]["deletionTimestamp"].is_string() && !held {
            self.objects.remove(name);
            "DELETED"
        } else {
            self.objects.insert(name.to_owned(), object.clone());
            if known { "MODIFIED" } else { "ADDED" }
        };
        let event = json!({"type": kind, "object": object}).to_string();
        self.log.push((self.version, event.clone()));
        self.watchers
            .retain(|watcher| watcher.send(event.clone()).is_ok());
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let (Some(fields), Some(patch)) = (into.as_object_mut(), patch.as_object()) else {
        *into = patch.clone();
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(
                fields.entry(name.clone()).or_insert_with(|| json!({})),
                value,
            );
        }
    }
}

fn failure(code: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": "Scripted", "message": format!("scripted {code}"),
    })
}
