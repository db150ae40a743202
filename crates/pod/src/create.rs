//! Creates a pod and its service at the same time.

use std::{sync::Arc, time::Instant};

use runner_cluster::{
    AnnounceTarget, ApiError, Cluster, CreateOutcome, Injection, Injector, Pinning, RenderOptions,
    ServiceObservation, Templates, render_pod, render_service,
};
use runner_core::{EvaluationError, ImageReference, Reason};
use runner_pool::{Create, Event, StartFailure};
use runner_registry::Registry;

use crate::{
    functions::{Functions, Inspected},
    inbox::{Inbox, Message},
};

/// The clients and settings needed to create pods, shared by all attempts.
#[derive(Clone)]
pub(crate) struct Creator {
    pub(crate) cluster: Cluster,
    pub(crate) registry: Registry,
    pub(crate) functions: Functions,
    pub(crate) render: Arc<RenderOptions>,
    pub(crate) injector: Arc<Injector>,
    /// Whether pods get services.
    pub(crate) services: bool,
    pub(crate) inbox: Inbox,
}

// === impl Creator ===

impl Creator {
    /// Creates a pod and its service, and reports the outcome of the pod to the driver.
    pub(crate) async fn create(
        self,
        create: Create,
        templates: Arc<Templates>,
        announce: Option<AnnounceTarget>,
    ) {
        let started = Instant::now();
        let inspected = match self.inspected(&create).await {
            Ok(inspected) => inspected,
            Err(failure) => return self.failed(&create, failure).await,
        };
        let image = create.function.image();
        let settings = self.functions.configured(image);
        let pinning = self.pinning(image).await;
        let create_by = async |injection: Injection| {
            let options = RenderOptions {
                injection,
                pinning,
                ..(*self.render).clone()
            };
            let rendered = render_pod(
                &create,
                &templates,
                &inspected.metadata.entrypoint,
                settings.overrides.as_deref(),
                announce.as_ref(),
                &options,
            );
            self.cluster.create_pod(&rendered).await
        };
        let create_pod = async {
            let injection = self.injector.choose(&templates).await;
            let outcome = create_by(injection).await;
            if let CreateOutcome::Failed(ApiError::Refused(_)) = &outcome
                && let Some(next) = self.injector.alternative_to(injection, &templates).await
            {
                return create_by(next).await;
            }
            outcome
        };
        let (outcome, service) = tokio::join!(create_pod, self.create_service(&create, &templates));
        match &outcome {
            CreateOutcome::Created { .. } => {
                tracing::info!(pod = %create.name, %image, took = ?started.elapsed(), "pod created");
            }
            CreateOutcome::NameTaken(_) => {
                tracing::info!(pod = %create.name, "a pod of that name is there already");
            }
            CreateOutcome::Failed(error) => {
                error.log("cannot create a pod", create.name.as_str());
                if let Some(service) = service {
                    tokio::spawn(self.clone().remove_service(service));
                }
            }
        }
        let created = Message::Created {
            create,
            outcome,
            looked_up: inspected.took,
        };
        self.inbox.send(created).await;
    }

    /// Returns how a pod names its image: by tag only while the tag points at the requested digest.
    ///
    /// A caller may have named another digest, or the tag may have moved.
    async fn pinning(&self, image: &ImageReference) -> Pinning {
        let (Pinning::Tag, Some(tag)) = (self.render.pinning, image.tag()) else {
            return Pinning::Digest;
        };
        match self.registry.inspect(&image.at_tag(tag), None, None).await {
            Ok(metadata) if Some(&metadata.digest) == image.digest() => Pinning::Tag,
            _ => Pinning::Digest,
        }
    }

    async fn create_service(
        &self,
        create: &Create,
        templates: &Templates,
    ) -> Option<ServiceObservation> {
        if !self.services {
            return None;
        }
        self.make_service(create.slot.as_str(), templates).await
    }

    /// Creates the service of a slot. Returns none if the service exists already or cannot be
    /// created.
    pub(crate) async fn make_service(
        &self,
        slot: &str,
        templates: &Templates,
    ) -> Option<ServiceObservation> {
        let rendered = render_service(&slot.into(), templates, &self.render);
        match self.cluster.create_service(&rendered).await {
            Ok(made) => made,
            Err(error) => {
                error.log("cannot create a service", slot);
                None
            }
        }
    }

    /// Removes a service whose pod is gone.
    pub(crate) async fn remove_service(self, service: ServiceObservation) {
        if let Err(error) = self.cluster.delete_service(&service).await {
            error.log("cannot delete a service", &service.name);
        }
    }

    async fn inspected(&self, create: &Create) -> Result<Inspected, StartFailure> {
        let image = create.function.image();
        if let Some(inspected) = self.functions.inspected(image) {
            return Ok(inspected);
        }
        let asked = Instant::now();
        match self.registry.inspect(image, None, None).await {
            Ok(metadata) => Ok(Inspected {
                metadata,
                took: asked.elapsed(),
            }),
            Err(error) => {
                let error = EvaluationError::from(error);
                Err(match error.reason() {
                    Reason::RegistryUnreachable | Reason::DeadlineExceeded => {
                        StartFailure::Passing(error)
                    }
                    _ => StartFailure::Refused(error),
                })
            }
        }
    }

    async fn failed(&self, create: &Create, failure: StartFailure) {
        let event = Event::StartFailed {
            name: create.name.clone(),
            attempt: create.attempt,
            failure,
        };
        self.inbox.send(Message::Event(event)).await;
    }
}
