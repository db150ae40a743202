//! Sends a request to a registry, with authorization, retries, size limits and timeouts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode, Url,
    header::{HeaderMap, HeaderName},
};

use crate::{
    RegistryError,
    authenticate::{Authenticator, Authorization, ChallengeResponse, TokenRequest},
    endpoint::{Endpoint, Endpoints},
    metrics::Metrics,
    retry,
    transport::{Transport, cause_chain, is_plaintext_server},
};

mod body;
mod context;

use body::{error_text, read};
pub(crate) use context::RequestContext;

const TOKEN_LIMIT: usize = 1 << 20;

/// A request to a registry.
pub(crate) struct ApiRequest<'a> {
    /// Name of the operation in metrics.
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    pub(crate) resource: Resource<'a>,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Option<Bytes>,
    /// Maximum size of the response in bytes.
    pub(crate) limit: usize,
}

/// The resource that a request is for.
#[derive(Clone)]
pub(crate) enum Resource<'a> {
    /// A path within the repository, such as `manifests/v1`.
    Path(&'a str),
    /// A URL that the registry returned.
    Url(Url),
}

/// A response with a meaningful status: found, unchanged, not found, or a bad request.
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// URL that sent the response, after redirects.
    pub(crate) url: Url,
    /// Description of the credentials that were used, for people.
    pub(crate) credentials: String,
}

/// The reason why an attempt failed.
pub(crate) enum AttemptError {
    /// Another attempt may succeed, after the delay if the server requested one.
    Temporary {
        cause: String,
        retry_after: Option<Duration>,
    },
    /// Another attempt cannot succeed.
    Permanent(RegistryError),
}

/// A failed request, and whether the server seems to have no TLS.
struct RequestError {
    no_tls: bool,
    error: AttemptError,
}

/// A client of the registry API, with authorization, retries, size limits and timeouts.
pub(crate) struct RegistryClient {
    transport: Transport,
    authenticator: Authenticator,
    endpoints: Arc<Endpoints>,
    metrics: Metrics,
    request_timeout: Duration,
    /// Whether the last request without TLS succeeded, by host; only hosts that allow plain HTTP.
    plaintext_hosts: Mutex<HashMap<String, bool>>,
}

// === impl RegistryClient ===

impl RegistryClient {
    pub(crate) fn new(
        transport: Transport,
        authenticator: Authenticator,
        endpoints: Arc<Endpoints>,
        metrics: Metrics,
        request_timeout: Duration,
    ) -> Self {
        let plaintext_hosts = Mutex::default();
        Self {
            transport,
            authenticator,
            endpoints,
            metrics,
            request_timeout,
            plaintext_hosts,
        }
    }

    /// Sends a request until there is a response or the attempts or the time are used up.
    pub(crate) async fn send(
        &self,
        context: &RequestContext<'_>,
        request: &ApiRequest<'_>,
    ) -> Result<ApiResponse, RegistryError> {
        let mut attempt = 1;
        let mut delays = retry::backoff();
        loop {
            let (cause, retry_after) = match self.send_authorized(context, request).await {
                Ok(response) if retry::is_retryable(response.status) => {
                    let text = error_text(&response.body, ": ");
                    let cause = format!("it answered {}{text}", response.status);
                    let delay = retry::retry_after(&response.headers, SystemTime::now());
                    (cause, delay)
                }
                Ok(response) if is_refusal(response.status) => {
                    self.authenticator.remove(context).await;
                    return Err(context.refused(&response.body, response.credentials));
                }
                Ok(response) => return Ok(response),
                Err(AttemptError::Temporary { cause, retry_after }) => (cause, retry_after),
                Err(AttemptError::Permanent(error)) => return Err(error),
            };
            let backoff = delays.next().unwrap_or_default();
            let delay = retry_after.unwrap_or(backoff);
            if attempt >= context.attempts || Instant::now() + delay >= context.until {
                return Err(context.unreachable(cause, retry_after));
            }
            tracing::debug!(
                registry = context.endpoint.name,
                cause,
                ?delay,
                "retrying a request"
            );
            self.metrics.retry(&context.endpoint.name);
            tokio::time::sleep(delay).await;
            attempt += 1;
        }
    }

    /// Sends a request with the last accepted authorization; if refused, answers one challenge.
    async fn send_authorized(
        &self,
        context: &RequestContext<'_>,
        request: &ApiRequest<'_>,
    ) -> Result<ApiResponse, AttemptError> {
        let cached = self.authenticator.cached(context).await;
        let first = self.send_once(context, request, cached.as_deref()).await?;
        if first.status != StatusCode::UNAUTHORIZED {
            return Ok(first);
        }
        let challenge = self.authenticator.respond(context, &first.headers).await?;
        let authorization = match challenge {
            ChallengeResponse::Authorize(authorization) => authorization,
            ChallengeResponse::RequestToken(request) => self.token(context, *request).await?,
            ChallengeResponse::NoCredentials { source } => {
                return Ok(ApiResponse {
                    credentials: source,
                    ..first
                });
            }
        };
        let second = self
            .send_once(context, request, Some(&authorization))
            .await?;
        if !is_refusal(second.status) {
            self.authenticator.store(context, &authorization).await;
        }
        Ok(second)
    }

    async fn send_once(
        &self,
        context: &RequestContext<'_>,
        request: &ApiRequest<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<ApiResponse, AttemptError> {
        let endpoint = context.endpoint;
        let send_to = async |url: &str| self.send_to(context, request, authorization, url).await;
        let path = match &request.resource {
            Resource::Path(path) => *path,
            Resource::Url(url) => {
                return send_to(url.as_str()).await.map_err(|failed| failed.error);
            }
        };
        // A host that may be used without TLS is tried with TLS first, and again after any failure.
        if !self.uses_plaintext(endpoint) {
            match send_to(&endpoint.url("https", path)).await {
                Err(RequestError { no_tls: true, .. }) if endpoint.plain_http => {}
                outcome => return outcome.map_err(|failed| failed.error),
            }
        }
        let outcome = send_to(&endpoint.url("http", path)).await;
        self.set_plaintext(endpoint, outcome.is_ok());
        outcome.map_err(|failed| failed.error)
    }

    async fn send_to(
        &self,
        context: &RequestContext<'_>,
        request: &ApiRequest<'_>,
        authorization: Option<&Authorization>,
        url: &str,
    ) -> Result<ApiResponse, RequestError> {
        let client = self.transport.client(context.endpoint.loopback);
        let mut builder = client.request(request.method.clone(), url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        if let Some(authorization) = authorization {
            builder = authorization.apply(builder);
        }
        let mut response = self
            .perform(context, request.operation, builder, request.limit)
            .await?;
        if let Some(authorization) = authorization {
            response.credentials.clone_from(&authorization.source);
        }
        Ok(response)
    }

    async fn token(
        &self,
        context: &RequestContext<'_>,
        request: TokenRequest,
    ) -> Result<Arc<Authorization>, AttemptError> {
        let realm = &request.realm;
        if realm.scheme() != "https" && !self.endpoints.allow_plain_http(realm) {
            return Err(context.permanent_error(format!("its token server {realm} has no TLS")));
        }
        let server = format!("its token server {}", realm.host_str().unwrap_or_default());
        let client = self.transport.client(self.endpoints.is_loopback(realm));
        let response = self
            .perform(context, "token", request.build(&client), TOKEN_LIMIT)
            .await
            .map_err(|failed| match failed.error {
                AttemptError::Temporary { cause, retry_after } => AttemptError::Temporary {
                    cause: format!("{server}: {cause}"),
                    retry_after,
                },
                permanent => permanent,
            })?;
        match response.status {
            status if status.is_success() => request
                .accept(&response.body)
                .map_err(|cause| context.permanent_error(format!("{server} {cause}"))),
            status if is_refusal(status) || status == StatusCode::BAD_REQUEST => {
                let error = context.refused(&response.body, request.source);
                Err(AttemptError::Permanent(error))
            }
            status => Err(AttemptError::Temporary {
                cause: format!("{server} answered {status}"),
                retry_after: retry::retry_after(&response.headers, SystemTime::now()),
            }),
        }
    }

    /// Sends one request and reads the response, within the time and size limits.
    async fn perform(
        &self,
        context: &RequestContext<'_>,
        operation: &'static str,
        request: RequestBuilder,
        limit: usize,
    ) -> Result<ApiResponse, RequestError> {
        let started = Instant::now();
        let left = context.until.saturating_duration_since(started);
        let sent = request.timeout(left.min(self.request_timeout)).send().await;
        let status = sent
            .as_ref()
            .ok()
            .map(|response| response.status().as_u16());
        let outcome = match sent {
            Ok(response) => read(response, limit).await.map_err(|error| RequestError {
                no_tls: false,
                error: error.into_attempt_error(context, operation),
            }),
            Err(error) => Err(RequestError {
                no_tls: is_plaintext_server(&error),
                error: AttemptError::Temporary {
                    cause: cause_chain(&error),
                    retry_after: None,
                },
            }),
        };
        self.metrics
            .request(&context.endpoint.name, operation, status, started.elapsed());
        outcome
    }

    fn uses_plaintext(&self, endpoint: &Endpoint) -> bool {
        endpoint.plain_http && self.plaintext().get(&endpoint.name) == Some(&true)
    }

    fn set_plaintext(&self, endpoint: &Endpoint, plaintext: bool) {
        self.plaintext().insert(endpoint.name.clone(), plaintext);
    }

    fn plaintext(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        let hosts = &self.plaintext_hosts;
        hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}
