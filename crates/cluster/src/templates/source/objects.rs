//! Watches the `PodTemplate` and `ServiceTemplate` objects, and creates missing ones.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::PodTemplate;
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use runner_core::with_causes;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::report;
use crate::{
    ApiError, Observation, TemplateError, Templates,
    client::{WatchBackoff, watch_config},
    names::{POD_TEMPLATE, SERVICE_TEMPLATE},
    objects::ServiceTemplate,
    requests::{post, with_timeout},
    templates::default,
};

/// Time between two attempts to list a kind that does not exist or may not be listed.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The same time with `--template-wait-timeout`, when the kind may be installed soon.
const SHORT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The two template objects, and the handling of missing ones.
pub struct TemplateObjects {
    /// Client of the API server.
    pub client: Client,
    /// The pod namespace.
    pub namespace: String,
    /// Name of the `PodTemplate` (`--base-pod-template-name`).
    pub pod_name: String,
    /// Name of the `ServiceTemplate` (`--base-service-template-name`).
    pub service_name: String,
    /// Handling of a template that does not exist.
    pub missing: MissingTemplates,
}

/// Handling of a template that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingTemplates {
    /// Whether a missing template is an error instead of being created
    /// (`--skip-template-creation`).
    pub skip_creation: bool,
    /// Time to wait for others to create the template (`--template-wait-timeout`).
    pub wait: Duration,
}

/// The known state of one of the two objects.
#[derive(Clone)]
enum ObjectState<K> {
    /// Nothing is known, or the object is about to be created.
    Pending,
    /// The object does not exist and is not created: the built-in template is used.
    Absent,
    /// The object must exist, but does not.
    Missing(TemplateError),
    Present(Box<K>),
}

/// A change of one object, reported by the watch.
enum Change<K> {
    Present(Box<K>),
    /// The kind can be listed and has no such object.
    Absent,
    /// The kind is unknown or may not be listed.
    Unlisted(String),
}

struct Object<K> {
    api: Api<K>,
    name: String,
    namespace: String,
    built_in: K,
    missing: MissingTemplates,
    /// Whether the object has existed at any time.
    ///
    /// An object that was removed is not created again: the installation may be being removed.
    existed: bool,
    known: watch::Sender<ObjectState<K>>,
}

// === impl TemplateObjects ===

impl TemplateObjects {
    /// Returns the objects with their usual names; missing ones are created at once.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            pod_name: POD_TEMPLATE.to_owned(),
            service_name: SERVICE_TEMPLATE.to_owned(),
            missing: MissingTemplates::default(),
        }
    }

    /// Watches both objects and reports every change of the pair.
    pub(super) async fn follow(self, observations: mpsc::UnboundedSender<Observation>) {
        let built_in = default::pod_template_object(&self.pod_name);
        let (pod, mut pod_known) = self.object::<PodTemplate>(&self.pod_name, built_in);
        let built_in = default::service_template_object(&self.service_name);
        let (service, mut service_known) =
            self.object::<ServiceTemplate>(&self.service_name, built_in);
        let report_changes = async {
            let mut last = None;
            loop {
                let templates = pair(
                    &pod_known.borrow_and_update(),
                    &service_known.borrow_and_update(),
                );
                if let Some(templates) = templates
                    && last.as_ref() != Some(&templates)
                {
                    last = Some(templates.clone());
                    if observations.send(report(templates)).is_err() {
                        return;
                    }
                }
                tokio::select! {
                    Ok(()) = pod_known.changed() => {}
                    Ok(()) = service_known.changed() => {}
                    else => return,
                }
            }
        };
        tokio::select! {
            () = report_changes => {}
            ((), ()) = futures::future::join(pod.follow(), service.follow()) => {}
        }
    }

    fn object<K>(&self, name: &str, built_in: K) -> (Object<K>, watch::Receiver<ObjectState<K>>)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        let (known, changes) = watch::channel(ObjectState::Pending);
        let object = Object {
            api: Api::namespaced(self.client.clone(), &self.namespace),
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            built_in,
            missing: self.missing,
            existed: false,
            known,
        };
        (object, changes)
    }
}

/// Returns the templates of both objects, or `None` while one of them is pending.
fn pair(
    pod: &ObjectState<PodTemplate>,
    service: &ObjectState<ServiceTemplate>,
) -> Option<Result<Templates, TemplateError>> {
    match (pod.object()?, service.object()?) {
        (Ok(pod), Ok(service)) => Some(Templates::of_objects(pod, service)),
        (Err(error), _) | (_, Err(error)) => Some(Err(error.clone())),
    }
}

// === impl Object ===

impl<K> Object<K>
where
    K: Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static,
{
    async fn follow(mut self) {
        let retry_interval = match self.missing.wait {
            Duration::ZERO => RETRY_INTERVAL,
            _ => SHORT_RETRY_INTERVAL,
        };
        let mut changes = pin!(changes(self.api.clone(), &self.name, retry_interval));
        let mut backoff = WatchBackoff::default();
        // The time at which a missing object is created or becomes an error.
        let mut due: Option<Instant> = None;
        let mut logged = false;
        loop {
            tokio::select! {
                biased;
                change = changes.next() => match change {
                    None => return,
                    Some(Change::Present(object)) => {
                        due = None;
                        self.existed = true;
                        self.known.send_replace(ObjectState::Present(object));
                    }
                    Some(Change::Absent) if self.existed => self.give_up("it was removed"),
                    Some(Change::Absent) => {
                        due = due.or_else(|| Some(Instant::now() + self.missing.wait));
                    }
                    Some(Change::Unlisted(_)) if self.is_awaited() => {
                        due = due.or_else(|| Some(Instant::now() + self.missing.wait));
                    }
                    Some(Change::Unlisted(why)) => {
                        due = None;
                        self.give_up(&why);
                    }
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = match self.create_missing().await {
                        Ok(()) => None,
                        Err(error) => {
                            if !std::mem::replace(&mut logged, true) {
                                error.log("cannot store the built-in template yet", &self.name);
                            }
                            Some(Instant::now() + backoff.next().unwrap_or(RETRY_INTERVAL))
                        }
                    };
                }
            }
        }
    }

    /// Returns whether the state is still pending and the kind may be installed soon.
    fn is_awaited(&self) -> bool {
        !self.missing.wait.is_zero() && matches!(*self.known.borrow(), ObjectState::Pending)
    }

    /// Creates the object from the built-in template, so that operators can find and change it.
    ///
    /// # Errors
    /// Fails if the API server cannot create the object now; a retry may help.
    async fn create_missing(&mut self) -> Result<(), ApiError> {
        if self.missing.skip_creation {
            self.give_up("it does not exist");
            return Ok(());
        }
        match with_timeout(self.api.create(&post(), &self.built_in)).await {
            Ok(created) => {
                tracing::info!(name = self.name, "stored the built-in template");
                self.existed = true;
                self.known
                    .send_replace(ObjectState::Present(Box::new(created)));
            }
            // Another replica created the object first; the watch shows it.
            Err(ApiError::Conflict(_)) => {}
            Err(error @ (ApiError::Refused(_) | ApiError::NotFound(_))) => {
                tracing::warn!(
                    name = self.name,
                    error = with_causes(&error),
                    "cannot store the built-in template; it is used all the same"
                );
                self.known.send_replace(ObjectState::Absent);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Falls back to the built-in template, or reports that the object must exist.
    fn give_up(&self, why: &str) {
        self.known.send_replace(if self.missing.skip_creation {
            ObjectState::Missing(TemplateError::Missing {
                kind: K::kind(&()).into_owned(),
                namespace: self.namespace.clone(),
                name: self.name.clone(),
                why: why.to_owned(),
            })
        } else {
            ObjectState::Absent
        });
    }
}

/// Watches one object.
fn changes<K>(
    api: Api<K>,
    name: &str,
    retry_interval: Duration,
) -> impl futures::Stream<Item = Change<K>> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let config = watch_config().fields(&format!("metadata.name={name}"));
    let mut listed = None;
    let mut refused = false;
    let events = watcher(api, config).backoff(WatchBackoff::default());
    events.filter_map(move |event| {
        let mut pause = Duration::ZERO;
        let change = match event {
            Ok(watcher::Event::Init) => {
                listed = None;
                None
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed = Some(object);
                None
            }
            Ok(watcher::Event::InitDone) => Some(match listed.take() {
                Some(object) => Change::Present(Box::new(object)),
                None => Change::Absent,
            }),
            Ok(watcher::Event::Apply(object)) => Some(Change::Present(Box::new(object))),
            Ok(watcher::Event::Delete(_)) => Some(Change::Absent),
            Err(error) => lasting(&error).map(|why| {
                // The first refusal is reported at once; after that, retries are rarer.
                if std::mem::replace(&mut refused, true) {
                    pause = retry_interval;
                } else {
                    tracing::debug!(why, "a template cannot be watched");
                }
                Change::Unlisted(why)
            }),
        };
        async move {
            tokio::time::sleep(pause).await;
            change
        }
    })
}

/// Returns the API server's message if the kind is unknown or may not be listed.
fn lasting(error: &watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            matches!(status.code, 403 | 404).then(|| status.message.clone())
        }
        _ => None,
    }
}

// === impl ObjectState ===

impl<K> ObjectState<K> {
    #[allow(clippy::option_option)]
    fn object(&self) -> Option<Result<Option<&K>, &TemplateError>> {
        match self {
            Self::Pending => None,
            Self::Absent => Some(Ok(None)),
            Self::Missing(error) => Some(Err(error)),
            Self::Present(object) => Some(Ok(Some(object))),
        }
    }
}
