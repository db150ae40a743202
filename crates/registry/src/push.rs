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
    client::{ApiRequest, ApiResponse, RequestContext, Resource},
};

/// Maximum size in bytes of a response to an upload, of which only the headers are used.
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
        let context = RequestContext::push(image, &endpoint, until);
        let resource = format!("blobs/{digest}");
        let existing = self
            .request(&context, Method::HEAD, Resource::Path(&resource), None)
            .await?;
        if existing.status.is_success() {
            return Ok(());
        }
        let start = self
            .request(
                &context,
                Method::POST,
                Resource::Path("blobs/uploads/"),
                None,
            )
            .await
            .and_then(|response| expect(&context, response, StatusCode::ACCEPTED))?;
        let url = upload_url(&start, digest).map_err(|cause| context.unreachable(cause, None))?;
        let body = Some(("application/octet-stream", content));
        let response = self
            .request(&context, Method::PUT, Resource::Url(url), body)
            .await?;
        expect(&context, response, StatusCode::CREATED).map(drop)
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
        let context = RequestContext::push(image, &endpoint, until);
        let reference = match image.digest() {
            Some(digest) => digest.as_str(),
            None => image.tag_or_latest().unwrap_or_default(),
        };
        let resource = format!("manifests/{reference}");
        let body = Some((media_type, content));
        let response = self
            .request(&context, Method::PUT, Resource::Path(&resource), body)
            .await?;
        expect(&context, response, StatusCode::CREATED).map(drop)
    }

    async fn request(
        &self,
        context: &RequestContext<'_>,
        method: Method,
        resource: Resource<'_>,
        content: Option<(&str, Bytes)>,
    ) -> Result<ApiResponse, RegistryError> {
        let (media_type, body) = content.unzip();
        let headers = media_type
            .map(|media_type| (CONTENT_TYPE, media_type.to_owned()))
            .into_iter()
            .collect();
        let request = ApiRequest {
            operation: "push",
            method,
            resource,
            headers,
            body,
            limit: ANSWER_LIMIT,
        };
        self.resolver().client.send(context, &request).await
    }
}

fn expect(
    context: &RequestContext<'_>,
    response: ApiResponse,
    status: StatusCode,
) -> Result<ApiResponse, RegistryError> {
    if response.status == status {
        Ok(response)
    } else {
        Err(context.rejected(response.status, &response.body))
    }
}

/// Returns the URL of an upload, to which the registry may have added its own parameters.
fn upload_url(start: &ApiResponse, digest: &Digest) -> Result<Url, String> {
    let location = start
        .headers
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .ok_or("it sent no URL for the upload")?;
    let mut url = start
        .url
        .join(location)
        .map_err(|error| format!("its URL for the upload, {location:?}, is malformed: {error}"))?;
    if url.origin() != start.url.origin() {
        return Err(format!("its URL for the upload is on another host: {url}"));
    }
    url.query_pairs_mut().append_pair("digest", digest.as_str());
    Ok(url)
}
