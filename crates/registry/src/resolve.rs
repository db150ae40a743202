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
    endpoint::Endpoints,
    exchange::{Answer, Ask, Exchange, Place, Target},
    manifest::{self, Config, Manifest},
    metrics::Metrics,
};

mod tags;

/// Maximum size of a manifest (4 MiB): registries should accept this size, and none is larger.
const MANIFEST_LIMIT: usize = 4 << 20;
const CONFIG_LIMIT: usize = 4 << 20;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

pub(crate) struct Resolver {
    pub(crate) exchange: Exchange,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) platform: Platform,
    pub(crate) timeout: Duration,
    pub(crate) metrics: Metrics,
}

/// The metadata of an image, and the `ETag` with which it can be revalidated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) metadata: Arc<ImageMetadata>,
    etag: Option<String>,
}

/// A manifest whose digest was verified.
struct Fetched {
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
        known: Option<Arc<Known>>,
    ) -> Result<Arc<Known>, RegistryError> {
        let found = self.image_anywhere(image, known.as_ref()).await?;
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

    async fn image_anywhere(
        &self,
        image: &ImageReference,
        known: Option<&Arc<Known>>,
    ) -> Result<Arc<Known>, RegistryError> {
        let until = Instant::now() + self.timeout;
        for mirror in self.endpoints.mirrors(image) {
            match self
                .image_at(&Target::mirror(image, &mirror, until), known)
                .await
            {
                Ok(found) => return Ok(found),
                Err(error) => tracing::debug!(%error, mirror = mirror.name, "no answer here"),
            }
        }
        let origin = self.endpoints.origin(image);
        self.image_at(&Target::origin(image, &origin, until), known)
            .await
    }

    async fn image_at(
        &self,
        target: &Target<'_>,
        known: Option<&Arc<Known>>,
    ) -> Result<Arc<Known>, RegistryError> {
        if let Some(known) = known
            && self.still_holds(target, known).await?
        {
            return Ok(Arc::clone(known));
        }
        let image = target.image;
        let top = match (image.digest(), image.tag_or_latest()) {
            (Some(digest), _) => self.manifest(target, digest.as_str(), Some(digest)).await?,
            (None, tag) => self.manifest(target, tag.unwrap_or_default(), None).await?,
        };
        let unusable = |why| target.unusable(why);
        let config = match Manifest::parse(&top.body).map_err(unusable)? {
            Manifest::Image { config } => config,
            Manifest::Index(entries) => {
                let Some(entry) = manifest::choose(&entries, &self.platform) else {
                    let platforms = entries.iter().filter_map(|entry| entry.platform.as_ref());
                    return Err(RegistryError::NoPlatform {
                        image: image.to_string(),
                        platform: self.platform.clone(),
                        available: platforms.map(ToString::to_string).collect(),
                    });
                };
                let digest = entry.digest.as_str();
                let inner = self.manifest(target, digest, Some(&entry.digest)).await?;
                match Manifest::parse(&inner.body).map_err(unusable)? {
                    Manifest::Image { config } => config,
                    Manifest::Index(_) => {
                        return Err(target.unusable("its index lists another index"));
                    }
                }
            }
        };
        let config = self.config(target, &config).await?;
        self.describe(target, top, config)
    }

    /// Requests only the headers: most of the time nothing has changed.
    async fn still_holds(&self, target: &Target<'_>, known: &Known) -> Result<bool, RegistryError> {
        let place = format!(
            "manifests/{}",
            target.image.tag_or_latest().unwrap_or_default()
        );
        let mut headers = vec![(ACCEPT, manifest::ACCEPT.to_owned())];
        headers.extend(known.etag.clone().map(|etag| (IF_NONE_MATCH, etag)));
        let ask = Ask {
            operation: "check",
            method: Method::HEAD,
            place: Place::Repository(&place),
            headers,
            body: None,
            limit: MANIFEST_LIMIT,
        };
        let answer = self.exchange.send(target, &ask).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => Ok(true),
            StatusCode::NOT_FOUND => Err(target.not_found(&answer.body)),
            _ => Ok(header(&answer, &CONTENT_DIGEST) == Some(known.metadata.digest.as_str())),
        }
    }

    async fn manifest(
        &self,
        target: &Target<'_>,
        reference: &str,
        expected: Option<&Digest>,
    ) -> Result<Fetched, RegistryError> {
        let place = format!("manifests/{reference}");
        let headers = vec![(ACCEPT, manifest::ACCEPT.to_owned())];
        let answer = self
            .get(target, "manifest", &place, headers, MANIFEST_LIMIT)
            .await?;
        let digest = match expected {
            Some(expected) => verify(target, expected, &answer.body)?,
            None => {
                let announced = header(&answer, &CONTENT_DIGEST).map(Digest::parse);
                match announced {
                    Some(Ok(announced)) => verify(target, &announced, &answer.body)?,
                    _ => manifest::sha256(&answer.body),
                }
            }
        };
        let etag = header(&answer, &ETAG).map(str::to_owned);
        Ok(Fetched {
            body: answer.body,
            digest,
            etag,
            credentials: answer.credentials,
        })
    }

    async fn config(&self, target: &Target<'_>, digest: &Digest) -> Result<Config, RegistryError> {
        let place = format!("blobs/{digest}");
        let answer = self
            .get(target, "config", &place, Vec::new(), CONFIG_LIMIT)
            .await?;
        verify(target, digest, &answer.body)?;
        Config::parse(&answer.body).map_err(|why| target.unusable(why))
    }

    async fn get(
        &self,
        target: &Target<'_>,
        operation: &'static str,
        place: &str,
        headers: Vec<(HeaderName, String)>,
        limit: usize,
    ) -> Result<Answer, RegistryError> {
        let place = Place::Repository(place);
        let ask = Ask {
            operation,
            method: Method::GET,
            place,
            headers,
            body: None,
            limit,
        };
        accept(target, self.exchange.send(target, &ask).await?)
    }

    fn describe(
        &self,
        target: &Target<'_>,
        top: Fetched,
        config: Config,
    ) -> Result<Arc<Known>, RegistryError> {
        let image = target.image;
        if config.entrypoint.is_empty() {
            return Err(RegistryError::NoEntrypoint {
                image: image.to_string(),
            });
        }
        let platform = config.platform.unwrap_or_else(|| self.platform.clone());
        if self.platform.fit(&platform).is_none() {
            tracing::warn!(%image, %platform, wanted = %self.platform, "an image for another platform");
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
        Ok(Arc::new(Known {
            metadata,
            etag: top.etag,
        }))
    }
}

/// Returns a successful answer, and an error for any other status.
fn accept(target: &Target<'_>, answer: Answer) -> Result<Answer, RegistryError> {
    match answer.status {
        status if status.is_success() => Ok(answer),
        StatusCode::NOT_FOUND => Err(target.not_found(&answer.body)),
        status => Err(target.rejected(status, &answer.body)),
    }
}

fn verify(target: &Target<'_>, expected: &Digest, content: &[u8]) -> Result<Digest, RegistryError> {
    let digest = manifest::digest_like(expected, content);
    if digest == *expected {
        Ok(digest)
    } else {
        Err(target.unreachable(
            format!("it sent {digest} where {expected} was expected"),
            None,
        ))
    }
}

fn header<'a>(answer: &'a Answer, name: &HeaderName) -> Option<&'a str> {
    answer.headers.get(name)?.to_str().ok()
}
