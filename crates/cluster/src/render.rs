//! From a slot to be filled to the pod and the service that fill it.

mod harden;
mod overrides;
mod place;
mod wrapper;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, ContainerPort, LocalObjectReference, Pod, Service, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::core::ObjectMeta;
use runner_config::objects::TemplateOverrides;
use runner_core::ImageReference;
use runner_pool::{Create, PodName};

pub use overrides::fingerprint;

use crate::{
    IMAGE_LABEL, PORT, RECLAIM_AFTER, TEMPLATE_VERSION, Templates,
    names::{DEFAULT_CONTAINER, FUNCTION_CONTAINER, SAFE_TO_EVICT},
};

/// Images of the public catalog need no pull secret.
const PUBLIC_CATALOG: &str = "gcr.io/kpt-fn/";

/// How the wrapper gets into a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Injection {
    /// An init container copies it.
    #[default]
    Init,
    /// A container that starts before the function copies it, and stays.
    Container,
    /// Its image is mounted (Kubernetes ImageVolume).
    Image,
}

/// What is the same for all pods.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// The image with the wrapper (`WRAPPER_SERVER_IMAGE`).
    pub wrapper_image: String,
    /// How it gets into a pod.
    pub injection: Injection,
    /// The largest message, for the wrapper's flag.
    pub max_request_body_size: usize,
    /// The Secret that images outside the public catalog are pulled with.
    pub pull_secret: Option<String>,
}

/// Whom a pod's wrapper calls when it listens.
#[derive(Clone)]
pub struct Announce {
    /// Address and port of this runner.
    pub runner: String,
    /// What the wrapper proves itself with. Not printed: it is a secret for as long as it is good.
    pub token: String,
}

/// The pod of a slot.
#[must_use]
pub fn pod(
    create: &Create,
    templates: &Templates,
    entrypoint: &[String],
    overrides: Option<&TemplateOverrides>,
    announce: Option<&Announce>,
    options: &RenderOptions,
) -> Pod {
    let template = templates.pod.clone();
    let mut spec = template.spec.unwrap_or_default();
    let image = create.function.image();
    wrapper::inject(&mut spec, options);
    if let Some(overrides) = overrides {
        overrides::apply(&mut spec, overrides);
    }
    if options.injection == Injection::Container {
        wrapper::copy_beside(&mut spec);
    }
    if let Some(secret) = &options.pull_secret
        && !image.to_string().starts_with(PUBLIC_CATALOG)
    {
        attach(spec.image_pull_secrets.get_or_insert_default(), secret);
    }
    if let Some(container) = function_container(&mut spec.containers) {
        place::place(container, &image.to_string());
        fill(container, entrypoint, options);
        if let Some(announce) = announce {
            wrapper::tell(container, create.name.as_str(), announce);
        }
    }
    harden::harden(&mut spec);
    Pod {
        metadata: metadata(create, template.metadata.unwrap_or_default()),
        spec: Some(spec),
        status: None,
    }
}

/// The service of a slot.
#[must_use]
pub fn service(slot: &PodName, templates: &Templates) -> Service {
    let template = templates.service.clone();
    let given = template.metadata.unwrap_or_default();
    let mut spec = template.spec.unwrap_or_default();
    let name = slot.as_str().to_owned();
    spec.selector = Some(BTreeMap::from([(IMAGE_LABEL.to_owned(), name.clone())]));
    spec.type_.get_or_insert_with(|| "ClusterIP".to_owned());
    // The wrapper listens seconds before Kubernetes calls the pod ready.
    spec.publish_not_ready_addresses.get_or_insert(true);
    let port = i32::from(PORT);
    let ports = spec.ports.get_or_insert_default();
    if !ports.iter().any(|known| known.port == port) {
        ports.push(ServicePort {
            name: (!ports.is_empty()).then(|| "grpc".to_owned()),
            port,
            target_port: Some(IntOrString::Int(port)),
            ..ServicePort::default()
        });
    }
    let mut labels = given.labels.unwrap_or_default();
    labels.insert(IMAGE_LABEL.to_owned(), name.clone());
    Service {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            annotations: given.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// The image of a pod's function container.
pub(crate) fn image_of(pod: &Pod) -> Option<ImageReference> {
    let containers = &pod.spec.as_ref()?.containers;
    let function = containers
        .iter()
        .find(|container| container.name == FUNCTION_CONTAINER)?;
    function.image.as_deref()?.parse().ok()
}

fn function_container(containers: &mut [Container]) -> Option<&mut Container> {
    containers
        .iter_mut()
        .find(|container| container.name == FUNCTION_CONTAINER)
}

fn fill(container: &mut Container, entrypoint: &[String], options: &RenderOptions) {
    let size = options.max_request_body_size.to_string();
    let port = PORT.to_string();
    let args = container.args.get_or_insert_default();
    let flags = ["--port", &port, "--max-request-body-size", &size, "--"];
    args.extend(flags.map(str::to_owned));
    // Kubernetes expands $(NAME) in arguments; what the image says is meant as it is.
    args.extend(entrypoint.iter().map(|word| word.replace("$(", "$$(")));
    let ports = container.ports.get_or_insert_default();
    let port = i32::from(PORT);
    if !ports.iter().any(|known| known.container_port == port) {
        ports.push(ContainerPort {
            container_port: port,
            ..ContainerPort::default()
        });
    }
    // The last log lines of a crashed container come with its status: no permission needed. What
    // the template says is no wish: the API server writes `File` into every template it stores.
    container.termination_message_policy = Some("FallbackToLogsOnError".to_owned());
}

fn attach(secrets: &mut Vec<LocalObjectReference>, name: &str) {
    if !secrets.iter().any(|secret| secret.name == name) {
        secrets.push(LocalObjectReference {
            name: name.to_owned(),
        });
    }
}

fn metadata(create: &Create, given: ObjectMeta) -> ObjectMeta {
    let name = create.name.as_str().to_owned();
    let mut labels = given.labels.unwrap_or_default();
    labels.insert(IMAGE_LABEL.to_owned(), name.clone());
    let mut annotations = given.annotations.unwrap_or_default();
    annotations
        .entry(SAFE_TO_EVICT.to_owned())
        .or_insert_with(|| "true".to_owned());
    annotations
        .entry(DEFAULT_CONTAINER.to_owned())
        .or_insert_with(|| FUNCTION_CONTAINER.to_owned());
    annotations.insert(TEMPLATE_VERSION.to_owned(), create.template.to_string());
    let reclaim_after = create.reclaim_after.unix_secs().to_string();
    annotations.insert(RECLAIM_AFTER.to_owned(), reclaim_after);
    ObjectMeta {
        name: Some(name),
        labels: Some(labels),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
