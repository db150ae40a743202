//! Looks up an image at its mirrors and its registry, without a cache.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, ETAG, HeaderName, IF_NONE_MATCH},
};
use runner_core::{Digest, ImageReference};

use crate::{
    ImageMetadata, Platform, RegistryError,
    client::{ApiRequest, ApiResponse, RegistryClient, RequestContext, Resource},
    endpoint::Endpoints,
    manifest::{self, Config, Manifest},
    metrics::Metrics,
};

mod tags;

/// Maximum size of a manifest (4 MiB): registries should accept this size, and none is larger.
const MANIFEST_LIMIT: usize = 4 << 20;
const CONFIG_LIMIT: usize = 4 << 20;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Looks up images at their mirrors and registries.
pub(crate) struct Resolver {
    pub(crate) client: RegistryClient,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) platform: Platform,
    /// Timeout of a lookup with all its requests and retries.
    pub(crate) timeout: Duration,
    pub(crate) metrics: Metrics,
}

/// The metadata of an image, and the `ETag` with which it can be revalidated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedImage {
    pub(crate) metadata: Arc<ImageMetadata>,
    etag: Option<String>,
}

/// A manifest whose digest was verified.
struct FetchedManifest {
    body: Bytes,
    digest: Digest,
    etag: Option<String>,
    credentials: String,
}

// === impl Resolver ===

impl Resolver {
    /// Looks up an image, or revalidates its known metadata.
    pub(crate) async fn image(
        &self,
        image: &ImageReference,
        known: Option<Arc<ResolvedImage>>,
    ) -> Result<Arc<ResolvedImage>, RegistryError> {
        let found = self.resolve(image, known.as_ref()).await?;
        if let Some(known) = known
            && found.metadata.digest != known.metadata.digest
        {
            self.metrics.tag_moved();
            tracing::info!(
                %image, from = %known.metadata.digest, to = %found.metadata.digest, "a tag has moved"
            );
        }
        Ok(found)
    }

    async fn resolve(
        &self,
        image: &ImageReference,
        known: Option<&Arc<ResolvedImage>>,
    ) -> Result<Arc<ResolvedImage>, RegistryError> {
        let until = Instant::now() + self.timeout;
        for mirror in self.endpoints.mirrors(image) {
            match self
                .resolve_at(&RequestContext::mirror(image, &mirror, until), known)
                .await
            {
                Ok(found) => return Ok(found),
                Err(error) => {
                    tracing::debug!(%error, mirror = mirror.name, "the mirror has no answer");
                }
            }
        }
        let origin = self.endpoints.origin(image);
        self.resolve_at(&RequestContext::pull(image, &origin, until), known)
            .await
    }

    async fn resolve_at(
        &self,
        context: &RequestContext<'_>,
        known: Option<&Arc<ResolvedImage>>,
    ) -> Result<Arc<ResolvedImage>, RegistryError> {
        if let Some(known) = known
            && self.is_unchanged(context, known).await?
        {
            return Ok(Arc::clone(known));
        }
        let image = context.image;
        let top = match (image.digest(), image.tag_or_latest()) {
            (Some(digest), _) => {
                self.manifest(context, digest.as_str(), Some(digest))
                    .await?
            }
            (None, tag) => {
                self.manifest(context, tag.unwrap_or_default(), None)
                    .await?
            }
        };
        let unusable = |cause| context.unusable(cause);
        let config = match Manifest::parse(&top.body).map_err(unusable)? {
            Manifest::Image { config } => config,
            Manifest::Index(entries) => {
                let Some(entry) = manifest::best_entry(&entries, &self.platform) else {
                    let platforms = entries.iter().filter_map(|entry| entry.platform.as_ref());
                    return Err(RegistryError::NoPlatform {
                        image: image.to_string(),
                        platform: self.platform.clone(),
                        available: platforms.map(ToString::to_string).collect(),
                    });
                };
                let digest = entry.digest.as_str();
                let inner = self.manifest(context, digest, Some(&entry.digest)).await?;
                match Manifest::parse(&inner.body).map_err(unusable)? {
                    Manifest::Image { config } => config,
                    Manifest::Index(_) => {
                        return Err(context.unusable("its index lists another index"));
                    }
                }
            }
        };
        let config = self.config(context, &config).await?;
        self.describe(context, top, config)
    }

    /// Returns whether a tag still points at the known digest.
    ///
    /// Requests only the headers: most of the time nothing has changed.
    async fn is_unchanged(
        &self,
        context: &RequestContext<'_>,
        known: &ResolvedImage,
    ) -> Result<bool, RegistryError> {
        let resource = format!(
            "manifests/{}",
            context.image.tag_or_latest().unwrap_or_default()
        );
        let mut headers = vec![(ACCEPT, manifest::ACCEPT.to_owned())];
        headers.extend(known.etag.clone().map(|etag| (IF_NONE_MATCH, etag)));
        let request = ApiRequest {
            operation: "check",
            method: Method::HEAD,
            resource: Resource::Path(&resource),
            headers,
            body: None,
            limit: MANIFEST_LIMIT,
        };
        let response = self.client.send(context, &request).await?;
        match response.status {
            StatusCode::NOT_MODIFIED => Ok(true),
            StatusCode::NOT_FOUND => Err(context.not_found(&response.body)),
            _ => Ok(header(&response, &CONTENT_DIGEST) == Some(known.metadata.digest.as_str())),
        }
    }

    async fn manifest(
        &self,
        context: &RequestContext<'_>,
        reference: &str,
        expected: Option<&Digest>,
    ) -> Result<FetchedManifest, RegistryError> {
        let resource = format!("manifests/{reference}");
        let headers = vec![(ACCEPT, manifest::ACCEPT.to_owned())];
        let response = self
            .get(context, "manifest", &resource, headers, MANIFEST_LIMIT)
            .await?;
        let digest = match expected {
            Some(expected) => verify(context, expected, &response.body)?,
            None => {
                let declared = header(&response, &CONTENT_DIGEST).map(Digest::parse);
                match declared {
                    Some(Ok(declared)) => verify(context, &declared, &response.body)?,
                    _ => manifest::sha256(&response.body),
                }
            }
        };
        let etag = header(&response, &ETAG).map(str::to_owned);
        Ok(FetchedManifest {
            body: response.body,
            digest,
            etag,
            credentials: response.credentials,
        })
    }

    async fn config(
        &self,
        context: &RequestContext<'_>,
        digest: &Digest,
    ) -> Result<Config, RegistryError> {
        let resource = format!("blobs/{digest}");
        let response = self
            .get(context, "config", &resource, Vec::new(), CONFIG_LIMIT)
            .await?;
        verify(context, digest, &response.body)?;
        Config::parse(&response.body).map_err(|cause| context.unusable(cause))
    }

    async fn get(
        &self,
        context: &RequestContext<'_>,
        operation: &'static str,
        resource: &str,
        headers: Vec<(HeaderName, String)>,
        limit: usize,
    ) -> Result<ApiResponse, RegistryError> {
        let resource = Resource::Path(resource);
        let request = ApiRequest {
            operation,
            method: Method::GET,
            resource,
            headers,
            body: None,
            limit,
        };
        accept(context, self.client.send(context, &request).await?)
    }

    fn describe(
        &self,
        context: &RequestContext<'_>,
        top: FetchedManifest,
        config: Config,
    ) -> Result<Arc<ResolvedImage>, RegistryError> {
        let image = context.image;
        if config.entrypoint.is_empty() {
            return Err(RegistryError::NoEntrypoint {
                image: image.to_string(),
            });
        }
        let platform = config.platform.unwrap_or_else(|| self.platform.clone());
        if self.platform.rank(&platform).is_none() {
            tracing::warn!(%image, %platform, wanted = %self.platform, "the image is for another platform");
        }
        let tagged = match image.tag_or_latest() {
            Some(tag) => image.at_tag(tag),
            None => image.clone(),
        };
        let metadata = Arc::new(ImageMetadata {
            reference: tagged.at_digest(top.digest.clone()),
            digest: top.digest,
            platform,
            entrypoint: config.entrypoint,
            working_dir: config.working_dir,
            user: config.user,
            env: config.env,
            credential_source: top.credentials,
        });
        Ok(Arc::new(ResolvedImage {
            metadata,
            etag: top.etag,
        }))
    }
}

/// Returns a successful response, and an error for any other status.
fn accept(
    context: &RequestContext<'_>,
    response: ApiResponse,
) -> Result<ApiResponse, RegistryError> {
    match response.status {
        status if status.is_success() => Ok(response),
        StatusCode::NOT_FOUND => Err(context.not_found(&response.body)),
        status => Err(context.rejected(status, &response.body)),
    }
}

fn verify(
    context: &RequestContext<'_>,
    expected: &Digest,
    content: &[u8],
) -> Result<Digest, RegistryError> {
    let digest = manifest::digest_like(expected, content);
    if digest == *expected {
        Ok(digest)
    } else {
        Err(context.unreachable(
            format!("it sent {digest} where {expected} was expected"),
            None,
        ))
    }
}

fn header<'a>(response: &'a ApiResponse, name: &HeaderName) -> Option<&'a str> {
    response.headers.get(name)?.to_str().ok()
}
