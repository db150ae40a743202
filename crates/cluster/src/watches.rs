//! Watches the pods, services and templates of the pod namespace.

use std::{collections::HashSet, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use runner_pool::{PodName, Uid};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    IMAGE_LABEL, PodObservation, ServiceObservation, TemplateError, TemplateSource, Templates,
    client::{WatchBackoff, watch_config},
    observe,
};

/// An observation reported by one of the watches.
#[derive(Debug)]
pub enum Observation {
    /// A pod was created or changed.
    Pod(Box<PodObservation>),
    /// A pod was removed.
    PodGone {
        /// Name of the removed pod.
        name: PodName,
        /// UID of the removed pod; a new pod may have the same name.
        uid: Uid,
    },
    /// The watch was restarted; the UIDs of all existing pods.
    Pods(HashSet<Uid>),
    /// A service was created or changed.
    Service(ServiceObservation),
    /// The service of this name was removed.
    ServiceGone(String),
    /// The watch was restarted; the names of all existing services.
    Services(HashSet<String>),
    /// The templates changed, or cannot be used.
    Templates(Result<Arc<Templates>, TemplateError>),
}

/// Starts the watches; they run until the returned tasks are dropped.
#[must_use = "dropping it ends the watches"]
pub fn watch(
    client: &Client,
    namespace: &str,
    templates: TemplateSource,
    observations: mpsc::UnboundedSender<Observation>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let pods = Api::namespaced(client.clone(), namespace);
    let labelled = watch_config().labels(IMAGE_LABEL);
    tasks.spawn(follow(pods, labelled, "pods", observations.clone(), Pods));
    let services = Api::namespaced(client.clone(), namespace);
    // Services of earlier runners have no label and are recognised by their selector.
    let all = watch_config();
    tasks.spawn(follow(
        services,
        all,
        "services",
        observations.clone(),
        Services,
    ));
    tasks.spawn(templates.follow(observations));
    tasks
}

/// Conversion of the watch events of one kind of object into observations.
trait Kind<K>: Send + 'static {
    /// Converts an object that was created or changed.
    fn changed(&mut self, object: &K) -> Option<Observation>;
    /// Converts an object that was removed.
    fn removed(&mut self, object: &K) -> Option<Observation>;
    /// Converts the complete list of objects after the start of a watch.
    fn listed(&mut self, all: Vec<K>) -> Vec<Observation>;
}

struct Pods;

struct Services;

async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    what: &'static str,
    observations: mpsc::UnboundedSender<Observation>,
    mut kind: impl Kind<K>,
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, config).backoff(WatchBackoff::default()));
    let mut listed = Vec::new();
    let mut logged_refusal: Option<String> = None;
    while let Some(event) = events.next().await {
        let new = match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.push(object);
                Vec::new()
            }
            Ok(watcher::Event::InitDone) => {
                if logged_refusal.take().is_some() {
                    tracing::info!("{what} are watched again");
                }
                kind.listed(std::mem::take(&mut listed))
            }
            Ok(watcher::Event::Apply(object)) => kind.changed(&object).into_iter().collect(),
            Ok(watcher::Event::Delete(object)) => kind.removed(&object).into_iter().collect(),
            Err(error) => {
                if let Some(why) = refusal(&error)
                    && logged_refusal.as_ref() != Some(&why)
                {
                    tracing::warn!("cannot watch {what}: {why}");
                    logged_refusal = Some(why);
                }
                Vec::new()
            }
        };
        for observation in new {
            if observations.send(observation).is_err() {
                return;
            }
        }
    }
}

/// Returns the API server's message if it refused a watch.
///
/// Returns `None` if it only ended the watch (code 410), or did not answer, which the client logs.
fn refusal(error: &watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => {
            (status.code != 410).then(|| format!("{} (code {})", status.message, status.code))
        }
        _ => None,
    }
}

// === impl Pods ===

impl Kind<Pod> for Pods {
    fn changed(&mut self, pod: &Pod) -> Option<Observation> {
        observe(pod).map(|observation| Observation::Pod(Box::new(observation)))
    }

    fn removed(&mut self, pod: &Pod) -> Option<Observation> {
        Some(Observation::PodGone {
            name: pod.metadata.name.as_deref()?.into(),
            uid: pod.metadata.uid.as_deref()?.into(),
        })
    }

    fn listed(&mut self, all: Vec<Pod>) -> Vec<Observation> {
        let uids = all
            .iter()
            .filter_map(|pod| Some(pod.metadata.uid.as_deref()?.into()));
        let uids = Observation::Pods(uids.collect());
        let mut observations: Vec<_> = all.iter().filter_map(|pod| self.changed(pod)).collect();
        observations.push(uids);
        observations
    }
}

// === impl Services ===

impl Kind<Service> for Services {
    fn changed(&mut self, service: &Service) -> Option<Observation> {
        ServiceObservation::of(service).map(Observation::Service)
    }

    fn removed(&mut self, service: &Service) -> Option<Observation> {
        ServiceObservation::of(service).map(|service| Observation::ServiceGone(service.name))
    }

    fn listed(&mut self, all: Vec<Service>) -> Vec<Observation> {
        let services: Vec<_> = all.iter().filter_map(ServiceObservation::of).collect();
        let names = services.iter().map(|service| service.name.clone());
        let names = Observation::Services(names.collect());
        services
            .into_iter()
            .map(Observation::Service)
            .chain([names])
            .collect()
    }
}

#[cfg(test)]
mod tests;
