//! Lists the tags of an image, page by page.

use std::time::Instant;

use reqwest::{
    Method, Url,
    header::{HeaderMap, LINK},
};
use runner_core::ImageReference;
use serde::Deserialize;

use super::{Resolver, accept};
use crate::{
    RegistryError,
    client::{ApiRequest, RequestContext, Resource},
};

const FIRST_PAGE: &str = "tags/list?n=1000";
const PAGE_LIMIT: usize = 4 << 20;
/// Maximum number of pages, in case a registry never ends its list.
const MAX_PAGES: usize = 100;

#[derive(Deserialize)]
struct Page {
    tags: Option<Vec<String>>,
}

impl Resolver {
    /// Returns all tags of an image, in the registry's order.
    pub(crate) async fn tags(&self, image: &ImageReference) -> Result<Vec<String>, RegistryError> {
        let until = Instant::now() + self.timeout;
        for mirror in self.endpoints.mirrors(image) {
            match self
                .tags_at(&RequestContext::mirror(image, &mirror, until))
                .await
            {
                Ok(tags) => return Ok(tags),
                Err(error) => {
                    tracing::debug!(%error, mirror = mirror.name, "the mirror has no answer");
                }
            }
        }
        let origin = self.endpoints.origin(image);
        self.tags_at(&RequestContext::pull(image, &origin, until))
            .await
    }

    async fn tags_at(&self, context: &RequestContext<'_>) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        let mut resource = Resource::Path(FIRST_PAGE);
        for _ in 0..MAX_PAGES {
            let request = ApiRequest {
                operation: "tags",
                method: Method::GET,
                resource,
                headers: Vec::new(),
                body: None,
                limit: PAGE_LIMIT,
            };
            let response = accept(context, self.client.send(context, &request).await?)?;
            let page: Page = serde_json::from_slice(&response.body).map_err(|error| {
                context.unreachable(format!("its list of tags is malformed: {error}"), None)
            })?;
            tags.extend(page.tags.unwrap_or_default());
            resource = match next_page(&response.headers, &response.url) {
                Some(next) if same_origin(&next, &response.url) => Resource::Url(next),
                // The request would carry the credentials to another host.
                Some(next) => {
                    let cause = format!("its list of tags continues on another host, at {next}");
                    return Err(context.unreachable(cause, None));
                }
                None => return Ok(tags),
            };
        }
        Err(context.unreachable(
            format!("its list of tags has more than {MAX_PAGES} pages"),
            None,
        ))
    }
}

/// Returns the URL of `Link: <…>; rel="next"`, which may be relative.
fn next_page(headers: &HeaderMap, page: &Url) -> Option<Url> {
    let links = headers
        .get_all(LINK)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let next = links
        .flat_map(|value| value.split(','))
        .find(|link| link.contains("rel=\"next\""))?;
    let url = next.split_once('<')?.1.split_once('>')?.0;
    page.join(url).ok()
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}
