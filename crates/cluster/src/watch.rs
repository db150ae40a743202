//! What happens in the pod namespace: one watch each for pods, services and templates.

use std::{collections::HashSet, net::IpAddr, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use runner_config::{Again, watch_config};
use runner_pool::{PodName, Uid};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{BadTemplate, IMAGE_LABEL, Sighting, TemplateSource, Templates, observe};

/// Something the API server shows.
#[derive(Debug)]
pub enum Seen {
    /// A pod, new or changed.
    Pod(Box<Sighting>),
    /// A pod is no more.
    PodGone {
        /// Its name.
        name: PodName,
        /// Which of that name.
        uid: Uid,
    },
    /// The watch started over; these are all pods there are.
    Pods(HashSet<Uid>),
    /// A service, new or changed.
    Service(ServiceSeen),
    /// A service is no more.
    ServiceGone(String),
    /// The watch started over; these are all services there are.
    Services(HashSet<String>),
    /// The templates in force, or why there are none.
    Templates(Result<Arc<Templates>, BadTemplate>),
}

/// A service of a function pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    /// Its name, which is its pod's.
    pub name: String,
    /// What the API server calls it.
    pub uid: String,
    /// Its address in the cluster; none where it is headless.
    pub cluster_ip: Option<IpAddr>,
}

/// Watches until the tasks are dropped.
#[must_use = "dropping it ends the watches"]
pub fn watch(
    client: &Client,
    namespace: &str,
    templates: TemplateSource,
    seen: mpsc::UnboundedSender<Seen>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let pods = Api::namespaced(client.clone(), namespace);
    let labelled = watch_config().labels(IMAGE_LABEL);
    tasks.spawn(follow(pods, labelled, "pods", seen.clone(), Pods));
    let services = Api::namespaced(client.clone(), namespace);
    // Earlier runners made services without a label: they are known by what they select.
    let all = watch_config();
    tasks.spawn(follow(services, all, "services", seen.clone(), Services));
    tasks.spawn(templates.follow(seen));
    tasks
}

/// How one kind of object becomes what is seen.
trait Kind<K>: Send + 'static {
    fn shown(&mut self, object: &K) -> Option<Seen>;
    fn gone(&mut self, object: &K) -> Option<Seen>;
    fn listed(&mut self, all: Vec<K>) -> Vec<Seen>;
}

struct Pods;

struct Services;

async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    what: &'static str,
    seen: mpsc::UnboundedSender<Seen>,
    mut kind: impl Kind<K>,
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, config).backoff(Again::default()));
    let mut listed = Vec::new();
    let mut trouble: Option<String> = None;
    while let Some(event) = events.next().await {
        let shown = match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.push(object);
                Vec::new()
            }
            Ok(watcher::Event::InitDone) => {
                if trouble.take().is_some() {
                    tracing::info!("{what} are watched again");
                }
                kind.listed(std::mem::take(&mut listed))
            }
            Ok(watcher::Event::Apply(object)) => kind.shown(&object).into_iter().collect(),
            Ok(watcher::Event::Delete(object)) => kind.gone(&object).into_iter().collect(),
            Err(error) => {
                if let Some(why) = refusal(&error)
                    && trouble.as_ref() != Some(&why)
                {
                    tracing::warn!("cannot watch {what}: {why}");
                    trouble = Some(why);
                }
                Vec::new()
            }
        };
        for one in shown {
            if seen.send(one).is_err() {
                return;
            }
        }
    }
}

/// Returns the API server's message if it refused a watch. None where it only ended the watch, and
/// where it did not answer, which the client logs.
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
    fn shown(&mut self, pod: &Pod) -> Option<Seen> {
        observe(pod).map(|seen| Seen::Pod(Box::new(seen)))
    }

    fn gone(&mut self, pod: &Pod) -> Option<Seen> {
        Some(Seen::PodGone {
            name: pod.metadata.name.as_deref()?.into(),
            uid: pod.metadata.uid.as_deref()?.into(),
        })
    }

    fn listed(&mut self, all: Vec<Pod>) -> Vec<Seen> {
        let uids = all
            .iter()
            .filter_map(|pod| Some(pod.metadata.uid.as_deref()?.into()));
        let uids = Seen::Pods(uids.collect());
        let mut seen: Vec<_> = all.iter().filter_map(|pod| self.shown(pod)).collect();
        seen.push(uids);
        seen
    }
}

// === impl Services ===

impl Kind<Service> for Services {
    fn shown(&mut self, service: &Service) -> Option<Seen> {
        ServiceSeen::of(service).map(Seen::Service)
    }

    fn gone(&mut self, service: &Service) -> Option<Seen> {
        ServiceSeen::of(service).map(|seen| Seen::ServiceGone(seen.name))
    }

    fn listed(&mut self, all: Vec<Service>) -> Vec<Seen> {
        let services: Vec<_> = all.iter().filter_map(ServiceSeen::of).collect();
        let names = services.iter().map(|service| service.name.clone());
        let names = Seen::Services(names.collect());
        services
            .into_iter()
            .map(Seen::Service)
            .chain([names])
            .collect()
    }
}

// === impl ServiceSeen ===

impl ServiceSeen {
    /// Reads a service. None: it does not lead to the slot it is named after, so it is no function's.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let name = service.metadata.name.clone()?;
        if spec.selector.as_ref()?.get(IMAGE_LABEL) != Some(&name) {
            return None;
        }
        Some(Self {
            name,
            uid: service.metadata.uid.clone()?,
            cluster_ip: spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests;
