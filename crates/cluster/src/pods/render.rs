//! Renders the pod and the service of a slot from the templates.

mod harden;
mod image;
mod overrides;
mod sample;
mod wrapper;

use std::fmt;

use k8s_openapi::api::core::v1::{Container, ContainerPort, LocalObjectReference, Pod};
use kube::core::ObjectMeta;
use runner_config::PodOverrides;
use runner_core::{ImageReference, defaults, flags::GoFlags};
use runner_pool::Create;
use runner_registry::is_public;

pub use overrides::overrides_fingerprint;
pub use sample::sample_pod;

pub(crate) use overrides::fingerprint_of;

use crate::{
    IMAGE_LABEL, PORT, RECLAIM_AFTER, TEMPLATE_VERSION, Templates,
    names::{
        COPY_CONTAINER, DEFAULT_CONTAINER, FIELD_MANAGER, FUNCTION_CONTAINER, IMAGE_DIGEST,
        MANAGED_BY, SAFE_TO_EVICT, TOOLS,
    },
    objects::TemplateOverrides,
};

/// The wrapper's flag for the largest message, in bytes.
const SIZE_FLAG: &str = "max-request-body-size";

/// The way in which the wrapper gets into a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Injection {
    /// An init container copies the wrapper.
    #[default]
    Init,
    /// A container that starts before the function copies the wrapper and keeps running.
    Container,
    /// The wrapper's image is mounted as a volume (Kubernetes ImageVolume).
    Image,
}

/// The way in which pods name the function's image (`--image-pinning`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Tag and digest: every node runs the image that the tag resolved to at lookup.
    #[default]
    Digest,
    /// Tag alone, as requested; the digest is kept in an annotation.
    Tag,
}

// === impl Injection ===

impl Injection {
    /// Returns the injection that an existing pod was made with.
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::Init;
        };
        let mut volumes = spec.volumes.iter().flatten();
        if volumes.any(|volume| volume.name == TOOLS && volume.image.is_some()) {
            Self::Image
        } else if spec.containers.iter().any(|it| it.name == COPY_CONTAINER) {
            Self::Container
        } else {
            Self::Init
        }
    }

    /// Returns the name of the injection for use in a sentence.
    pub(crate) fn named(self) -> &'static str {
        match self {
            Self::Init => "an init container",
            Self::Container => "a container beside the function",
            Self::Image => "an image volume",
        }
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Init => "init",
            Self::Container => "container",
            Self::Image => "image",
        })
    }
}

/// Options that are the same for all pods and services.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Image that contains the wrapper (`WRAPPER_SERVER_IMAGE`).
    pub wrapper_image: String,
    /// The way in which the wrapper gets into a pod.
    pub injection: Injection,
    /// Largest message in bytes, for the wrapper's flag.
    pub max_request_body_size: usize,
    /// Name of the Secret for pulling images outside the public catalogs.
    pub pull_secret: Option<String>,
    /// Whether a service routes to its pod before the pod is ready.
    ///
    /// Needed only where pods are reached through services alone. Such a service also routes to
    /// terminating pods, which the Go runner does not expect when it takes over a slot.
    pub service_before_ready: bool,
    /// The way in which pods name the function's image.
    pub pinning: Pinning,
}

/// The data that a wrapper needs for its announcement.
///
/// The type has no `Debug`, so that the token is not printed: it is a secret while it is valid.
#[derive(Clone)]
pub struct AnnounceTarget {
    /// Address (host:port) of this runner.
    pub runner: String,
    /// Token that authenticates the wrapper.
    pub token: String,
}

/// Renders the pod of a slot.
#[must_use]
pub fn render_pod(
    create: &Create,
    templates: &Templates,
    entrypoint: &[String],
    overrides: Option<&PodOverrides>,
    announce: Option<&AnnounceTarget>,
    options: &RenderOptions,
) -> Pod {
    let template = templates.pod.clone();
    let mut spec = template.spec.unwrap_or_default();
    let image = create.function.image();
    wrapper::inject(&mut spec, options);
    if let Some(overrides) = overrides {
        overrides::apply(&mut spec, &TemplateOverrides::parse(overrides));
    }
    if options.injection == Injection::Container {
        wrapper::copy_in_container(&mut spec);
    }
    if let Some(secret) = &options.pull_secret
        && !is_public(image)
    {
        attach(spec.image_pull_secrets.get_or_insert_default(), secret);
    }
    if let Some(container) = function_container(&mut spec.containers) {
        match by_tag(image, options) {
            Some(by_tag) => {
                image::set_image(container, &by_tag.to_string());
                // The node may have an older image with this tag.
                container
                    .image_pull_policy
                    .get_or_insert_with(|| "Always".to_owned());
            }
            None => image::set_image(container, &image.to_string()),
        }
        set_arguments(container, entrypoint, options);
        if let Some(announce) = announce {
            wrapper::set_announcement(container, create.name.as_str(), announce);
        }
    }
    harden::harden(&mut spec);
    let mut metadata = metadata(create, template.metadata.unwrap_or_default());
    if by_tag(image, options).is_some()
        && let Some(digest) = image.digest()
    {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(IMAGE_DIGEST.to_owned(), digest.to_string());
    }
    Pod {
        metadata,
        spec: Some(spec),
        status: None,
    }
}

/// Returns the image of a pod's function container.
pub(crate) fn image_of(pod: &Pod) -> Option<ImageReference> {
    function_of(pod)?.image.as_deref()?.parse().ok()
}

/// Returns the largest message in bytes that a pod's wrapper accepts, according to its arguments.
pub(crate) fn message_limit_of(pod: &Pod) -> Option<u64> {
    let mut flags = GoFlags::new(function_of(pod)?.args.as_deref().unwrap_or_default());
    let mut limit = defaults::MAX_MESSAGE_SIZE as u64;
    while let Some(word) = flags.next_flag() {
        if let Ok(flag) = word
            && flag.name == SIZE_FLAG
            && let Some(value) = flags.value(&flag)
        {
            limit = value.parse().unwrap_or(limit);
        }
    }
    Some(limit)
}

/// Returns the wrapper image of a pod, for every kind of injection.
pub(crate) fn wrapper_image_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    let mut volumes = spec.volumes.iter().flatten();
    if let Some(volume) = volumes.find(|volume| volume.name == TOOLS)
        && let Some(source) = &volume.image
    {
        return source.reference.as_deref();
    }
    let mut containers = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    let copy = containers.find(|container| container.name == COPY_CONTAINER)?;
    copy.image.as_deref()
}

fn function_of(pod: &Pod) -> Option<&Container> {
    let containers = &pod.spec.as_ref()?.containers;
    containers
        .iter()
        .find(|container| container.name == FUNCTION_CONTAINER)
}

fn function_container(containers: &mut [Container]) -> Option<&mut Container> {
    containers
        .iter_mut()
        .find(|container| container.name == FUNCTION_CONTAINER)
}

/// Sets the arguments, the port and the termination message policy of the function container.
fn set_arguments(container: &mut Container, entrypoint: &[String], options: &RenderOptions) {
    let size = options.max_request_body_size.to_string();
    let port = PORT.to_string();
    let args = container.args.get_or_insert_default();
    let size_flag = format!("--{SIZE_FLAG}");
    let flags = ["--port", &port, &size_flag, &size, "--"];
    args.extend(flags.map(str::to_owned));
    // Kubernetes expands $(NAME) in arguments; the image's entrypoint is meant literally.
    args.extend(entrypoint.iter().map(|word| word.replace("$(", "$$(")));
    let ports = container.ports.get_or_insert_default();
    let port = i32::from(PORT);
    if !ports.iter().any(|known| known.container_port == port) {
        ports.push(ContainerPort {
            container_port: port,
            ..ContainerPort::default()
        });
    }
    // The status of a crashed container then has its last log lines, without a further permission.
    // The template's value is overwritten: it is rarely intended, since the API server writes the
    // default `File` into every template it stores.
    container.termination_message_policy = Some("FallbackToLogsOnError".to_owned());
}

/// Returns the image without its digest if pods name images by tag.
///
/// Returns `None` for an image that was requested without a tag: it keeps its digest.
fn by_tag(image: &ImageReference, options: &RenderOptions) -> Option<ImageReference> {
    match options.pinning {
        Pinning::Digest => None,
        Pinning::Tag => image.tag().map(|tag| image.at_tag(tag)),
    }
}

/// Adds a pull secret unless the list has it.
fn attach(secrets: &mut Vec<LocalObjectReference>, name: &str) {
    if !secrets.iter().any(|secret| secret.name == name) {
        secrets.push(LocalObjectReference {
            name: name.to_owned(),
        });
    }
}

fn metadata(create: &Create, given: ObjectMeta) -> ObjectMeta {
    let name = create.name.as_str().to_owned();
    let slot = create.slot.as_str().to_owned();
    let mut labels = given.labels.unwrap_or_default();
    labels.insert(IMAGE_LABEL.to_owned(), slot);
    labels
        .entry(MANAGED_BY.to_owned())
        .or_insert_with(|| FIELD_MANAGER.to_owned());
    let mut annotations = given.annotations.unwrap_or_default();
    annotations
        .entry(SAFE_TO_EVICT.to_owned())
        .or_insert_with(|| "true".to_owned());
    annotations
        .entry(DEFAULT_CONTAINER.to_owned())
        .or_insert_with(|| FUNCTION_CONTAINER.to_owned());
    annotations.insert(TEMPLATE_VERSION.to_owned(), create.template.stamp());
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
