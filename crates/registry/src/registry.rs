//! Looks up images, from the cache where possible.

use std::{sync::Arc, time::Instant};

use runner_core::{ImageReference, TagConstraint};

pub use crate::transport::SetUpError;
use crate::{
    ImageMetadata, Keychain, Options, RegistryError,
    authenticate::Authenticator,
    cache::{LookupCache, Wait},
    client::RegistryClient,
    endpoint::Endpoints,
    metrics::Metrics,
    resolve::{ResolvedImage, Resolver},
    transport::Transport,
};

/// A client for all registries. Clones share the cache.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    resolver: Resolver,
    images: LookupCache<ImageReference, Arc<ResolvedImage>>,
    selections: LookupCache<(ImageReference, String), Arc<ImageReference>>,
}

// === impl Registry ===

impl Registry {
    /// Sets up TLS and the HTTP clients; sends no request yet.
    pub fn new(options: Options) -> Result<Self, SetUpError> {
        let metrics = Metrics::new();
        let endpoints = Arc::new(Endpoints::new(options.mirrors, options.insecure_registries));
        let transport = Transport::new(options.ca, Arc::clone(&endpoints), metrics.clone())?;
        let private = options.private_credentials.map(Keychain::file);
        let client = RegistryClient::new(
            transport,
            Authenticator::new(options.keychain, private),
            Arc::clone(&endpoints),
            metrics.clone(),
            options.request_timeout,
        );
        let (capacity, ttl, failures) = (options.capacity, options.tag_ttl, options.failure_ttl);
        Ok(Self {
            inner: Arc::new(Inner {
                resolver: Resolver {
                    client,
                    endpoints,
                    platform: options.platform,
                    timeout: options.lookup_timeout,
                    metrics: metrics.clone(),
                },
                images: LookupCache::new(capacity, ttl, failures, metrics.clone()),
                selections: LookupCache::new(capacity, ttl, failures, metrics),
            }),
        })
    }

    /// Returns the metadata of an image at its own tag, or at the highest tag that satisfies a
    /// constraint.
    ///
    /// For an image with a digest the constraint is ignored. A lookup continues after the deadline,
    /// for the next caller.
    pub async fn inspect(
        &self,
        image: &ImageReference,
        tag: Option<&TagConstraint>,
        deadline: Option<Instant>,
    ) -> Result<Arc<ImageMetadata>, RegistryError> {
        let known = match tag {
            Some(constraint) if image.digest().is_none() => {
                let selected = self.select(image, constraint, deadline).await?;
                self.resolved(&selected, deadline).await?
            }
            _ => self.resolved(image, deadline).await?,
        };
        Ok(Arc::clone(&known.metadata))
    }

    async fn resolved(
        &self,
        image: &ImageReference,
        deadline: Option<Instant>,
    ) -> Result<Arc<ResolvedImage>, RegistryError> {
        let fixed = image.digest().is_some();
        let load = |known| {
            let (inner, image) = (Arc::clone(&self.inner), image.clone());
            async move { inner.resolver.image(&image, known).await }
        };
        self.inner
            .images
            .get(image, fixed, Wait::new(image, deadline), load)
            .await
    }

    async fn select(
        &self,
        image: &ImageReference,
        constraint: &TagConstraint,
        deadline: Option<Instant>,
    ) -> Result<Arc<ImageReference>, RegistryError> {
        let key = (image.clone(), constraint.as_str().to_owned());
        let load = |_| {
            let (registry, image) = (self.clone(), image.clone());
            let constraint = constraint.clone();
            async move { registry.select_tag(&image, &constraint).await.map(Arc::new) }
        };
        self.inner
            .selections
            .get(&key, false, Wait::new(image, deadline), load)
            .await
    }

    /// Selects a tag. A tag that the constraint names is requested first, which avoids the tag list
    /// in nearly all cases: for `0.4.1`, tags are listed only if the image has `v0.4.1` instead.
    async fn select_tag(
        &self,
        image: &ImageReference,
        constraint: &TagConstraint,
    ) -> Result<ImageReference, RegistryError> {
        if let Some(name) = constraint.exact() {
            let named = image.at_tag(name);
            match self.resolved(&named, None).await {
                Ok(_) => return Ok(named),
                Err(RegistryError::NotFound { .. }) if constraint.is_range() => {}
                Err(error) => return Err(error),
            }
        }
        let tags = self.inner.resolver.tags(image).await?;
        let tags = || {
            tags.iter()
                .map(String::as_str)
                .filter(|tag| is_release(tag))
        };
        match constraint.highest(tags()) {
            Some(tag) => Ok(image.at_tag(tag)),
            None => Err(RegistryError::NoTag {
                image: format!("{}/{}", image.registry(), image.repository()),
                constraint: constraint.to_string(),
                tags: tags().count(),
                highest: highest_version(tags()),
            }),
        }
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.inner.resolver
    }
}

/// Returns whether a tag may be a release: neither an attachment (`sha256-…`, a signature or an
/// SBOM) nor a build of a single commit (`…-git-…`).
fn is_release(tag: &str) -> bool {
    !tag.starts_with("sha256-") && !tag.contains("-git-")
}

fn highest_version<'a>(tags: impl Iterator<Item = &'a str>) -> Option<String> {
    let any = TagConstraint::parse("*").ok()?;
    any.highest(tags).map(str::to_owned)
}
