//! Pushes images to a registry; used by releases and tests, never by the runner.

use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, LOCATION},
};
use runner_core::{Digest, ImageReference};

use crate::{
    Registry, RegistryError,
    exchange::{Answer, Ask, Place, Target},
};

/// Maximum size in bytes of an answer to an upload, of which only the headers are used.
const ANSWER_LIMIT: usize = 64 << 10;
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(5 * 60);

impl Registry {
    /// Uploads content into the image's repository, unless it is there already.
    pub async fn push_blob(
        &self,
        image: &ImageReference,
        digest: &Digest,
        content: Bytes,
    ) -> Result<(), RegistryError> {
        let endpoint = self.resolver().endpoints.origin(image);
        let until = Instant::now() + UPLOAD_TIMEOUT;
        let target = Target::push(image, &endpoint, until);
        let place = format!("blobs/{digest}");
        let there = self
            .ask(&target, Method::HEAD, Place::Repository(&place), None)
            .await?;
        if there.status.is_success() {
            return Ok(());
        }
        let start = self
            .ask(
                &target,
                Method::POST,
                Place::Repository("blobs/uploads/"),
                None,
            )
            .await
            .and_then(|answer| expect(&target, answer, StatusCode::ACCEPTED))?;
        let address =
            upload_address(&start, digest).map_err(|why| target.unreachable(why, None))?;
        let body = Some(("application/octet-stream", content));
        let done = self
            .ask(&target, Method::PUT, Place::Address(address), body)
            .await?;
        expect(&target, done, StatusCode::CREATED).map(drop)
    }

    /// Uploads a manifest under the image's digest, or under its tag if it has no digest.
    ///
    /// The content that the manifest refers to must have been uploaded before.
    pub async fn push_manifest(
        &self,
        image: &ImageReference,
        media_type: &str,
        content: Bytes,
    ) -> Result<(), RegistryError> {
        let endpoint = self.resolver().endpoints.origin(image);
        let until = Instant::now() + UPLOAD_TIMEOUT;
        let target = Target::push(image, &endpoint, until);
        let reference = match image.digest() {
            Some(digest) => digest.as_str(),
            None => image.tag_or_latest().unwrap_or_default(),
        };
        let place = format!("manifests/{reference}");
        let body = Some((media_type, content));
        let done = self
            .ask(&target, Method::PUT, Place::Repository(&place), body)
            .await?;
        expect(&target, done, StatusCode::CREATED).map(drop)
    }

    async fn ask(
        &self,
        target: &Target<'_>,
        method: Method,
        place: Place<'_>,
        content: Option<(&str, Bytes)>,
    ) -> Result<Answer, RegistryError> {
        let (kind, body) = content.unzip();
        let headers = kind
            .map(|kind| (CONTENT_TYPE, kind.to_owned()))
            .into_iter()
            .collect();
        let ask = Ask {
            operation: "push",
            method,
            place,
            headers,
            body,
            limit: ANSWER_LIMIT,
        };
        self.resolver().exchange.send(target, &ask).await
    }
}

fn expect(
    target: &Target<'_>,
    answer: Answer,
    status: StatusCode,
) -> Result<Answer, RegistryError> {
    if answer.status == status {
        Ok(answer)
    } else {
        Err(target.rejected(answer.status, &answer.body))
    }
}

/// Returns the upload address, to which the registry may have added its own parameters.
fn upload_address(start: &Answer, digest: &Digest) -> Result<Url, String> {
    let location = start
        .headers
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .ok_or("it did not say where to upload")?;
    let mut address = start
        .address
        .join(location)
        .map_err(|error| format!("it wants uploads at {location:?}: {error}"))?;
    if address.origin() != start.address.origin() {
        return Err(format!("it wants uploads elsewhere, at {address}"));
    }
    address
        .query_pairs_mut()
        .append_pair("digest", digest.as_str());
    Ok(address)
}
