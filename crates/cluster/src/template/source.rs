//! Where templates come from, and following them there.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplate};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use runner_config::{Again, objects::ServiceTemplate};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::mpsc;

use super::{BadTemplate, Templates, default};
use crate::{
    ApiError, Seen,
    act::{post, within},
    names::{POD_TEMPLATE, SERVICE_TEMPLATE},
};

/// How often a kind that is unknown, or not ours to see, is asked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How often a ConfigMap that is not there or no good is read.
const UNTIL_GOOD: Duration = Duration::from_secs(2);

/// Where templates come from.
pub enum TemplateSource {
    /// `PodTemplate` and `ServiceTemplate` objects in the pod namespace, made where they are absent.
    Objects {
        /// The way there.
        client: Client,
        /// The pod namespace.
        namespace: String,
    },
    /// The older generation's ConfigMap. It may be read but not watched, so it is asked for.
    ConfigMap {
        /// The way there.
        client: Client,
        /// The runner's own namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// How often it is read.
        every: Duration,
    },
}

/// One of the two objects as far as it is known.
enum Part<K> {
    Unknown,
    Absent,
    There(Box<K>),
}

// === impl TemplateSource ===

impl TemplateSource {
    pub(crate) async fn follow(self, seen: mpsc::UnboundedSender<Seen>) {
        match self {
            Self::Objects { client, namespace } => follow_objects(client, &namespace, seen).await,
            Self::ConfigMap {
                client,
                namespace,
                name,
                every,
            } => follow_config_map(client, &namespace, &name, every, seen).await,
        }
    }
}

async fn follow_config_map(
    client: Client,
    namespace: &str,
    name: &str,
    every: Duration,
    seen: mpsc::UnboundedSender<Seen>,
) {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let mut last = None;
    loop {
        let read = match within(maps.get(name)).await {
            Ok(map) => Some(Templates::of_config_map(&map)),
            Err(error) => {
                let lasting = matches!(error, ApiError::NotFound(_) | ApiError::Refused(_));
                let unreadable = BadTemplate::Unreadable {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    why: error.to_string(),
                };
                if !lasting {
                    tracing::debug!("{unreadable}");
                }
                lasting.then_some(Err(unreadable))
            }
        };
        if let Some(templates) = read
            && last.as_ref() != Some(&templates)
        {
            last = Some(templates.clone());
            if seen.send(report(templates)).is_err() {
                return;
            }
        }
        // While there is none that is good, somebody may be about to put it right.
        let good = matches!(last, Some(Ok(_)));
        let pause = if good { every } else { every.min(UNTIL_GOOD) };
        tokio::time::sleep(pause).await;
    }
}

async fn follow_objects(client: Client, namespace: &str, seen: mpsc::UnboundedSender<Seen>) {
    let pods: Api<PodTemplate> = Api::namespaced(client.clone(), namespace);
    let services: Api<ServiceTemplate> = Api::namespaced(client, namespace);
    tokio::join!(
        make(&pods, POD_TEMPLATE, default::pod_template_object()),
        make(
            &services,
            SERVICE_TEMPLATE,
            default::service_template_object()
        ),
    );
    let mut pod_events = std::pin::pin!(changes(pods, POD_TEMPLATE));
    let mut service_events = std::pin::pin!(changes(services, SERVICE_TEMPLATE));
    let (mut pod, mut service) = (Part::Unknown, Part::Unknown);
    let mut last = None;
    loop {
        tokio::select! {
            Some(part) = pod_events.next() => pod.update(part),
            Some(part) = service_events.next() => service.update(part),
            else => return,
        }
        let (Some(pod), Some(service)) = (pod.known(), service.known()) else {
            continue;
        };
        let templates = Templates::of_objects(pod, service);
        if last.as_ref() != Some(&templates) {
            last = Some(templates.clone());
            if seen.send(report(templates)).is_err() {
                return;
            }
        }
    }
}

fn report(templates: Result<Templates, BadTemplate>) -> Seen {
    match &templates {
        Ok(templates) => tracing::info!(version = %templates.version, "pod template"),
        Err(error) => tracing::error!(
            "{error}: the last good template stays in use; without one no pods are started"
        ),
    }
    Seen::Templates(templates.map(Arc::new))
}

/// Stores the built-in template where there is none, for operators to find and change.
async fn make<K>(api: &Api<K>, name: &str, object: K)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let made = match within(api.get_opt(name)).await {
        Ok(Some(_)) => return,
        Ok(None) => within(api.create(&post(), &object)).await.map(|_| ()),
        Err(error) => Err(error),
    };
    match made {
        Ok(()) => tracing::info!(name, "stored the built-in template"),
        // Another replica was faster.
        Err(ApiError::Conflict(_)) => {}
        Err(error) => tracing::warn!(name, %error, "cannot store the built-in template"),
    }
}

/// What becomes of one object; absent as well where we may not look or the kind is unknown.
fn changes<K>(api: Api<K>, name: &'static str) -> impl futures::Stream<Item = Part<K>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut listed = None;
    let mut missing = false;
    let events = watcher(api, config).backoff(Again::default());
    events.filter_map(move |event| {
        let mut pause = Duration::ZERO;
        let part = match event {
            Ok(watcher::Event::Init) => {
                listed = None;
                None
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed = Some(object);
                None
            }
            Ok(watcher::Event::InitDone) => Some(match listed.take() {
                Some(object) => Part::There(Box::new(object)),
                None => Part::Absent,
            }),
            Ok(watcher::Event::Apply(object)) => Some(Part::There(Box::new(object))),
            Ok(watcher::Event::Delete(_)) => Some(Part::Absent),
            Err(error) if is_lasting(&error) => {
                // What is said for the first time is news; then it is enough to ask now and then.
                if std::mem::replace(&mut missing, true) {
                    pause = LOOK_AGAIN;
                } else {
                    tracing::debug!(name, %error, "no such template");
                }
                Some(Part::Absent)
            }
            Err(_) => None,
        };
        async move {
            tokio::time::sleep(pause).await;
            part
        }
    })
}

fn is_lasting(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            matches!(status.code, 403 | 404)
        }
        _ => false,
    }
}

// === impl Part ===

impl<K> Part<K> {
    fn update(&mut self, part: Self) {
        *self = part;
    }

    #[allow(clippy::option_option)]
    fn known(&self) -> Option<Option<&K>> {
        match self {
            Self::Unknown => None,
            Self::Absent => Some(None),
            Self::There(object) => Some(Some(object)),
        }
    }
}

#[cfg(test)]
mod tests;
