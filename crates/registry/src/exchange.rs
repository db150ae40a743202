//! Sends a request to a registry, with authorization, retries, size limits and timeouts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode, Url,
    header::{HeaderMap, HeaderName},
};

use crate::{
    RegistryError,
    authenticate::{Answer as Challenge, Authenticator, Held, TokenRequest},
    endpoint::{Endpoint, Endpoints},
    metrics::Metrics,
    retry,
    transport::{Transport, describe, speaks_no_tls},
};

mod body;
mod target;

use body::{read, said};
pub(crate) use target::Target;

const TOKEN_LIMIT: usize = 1 << 20;

/// A request to a registry.
pub(crate) struct Ask<'a> {
    /// Name of the operation in metrics.
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    pub(crate) place: Place<'a>,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Option<Bytes>,
    /// Maximum size of the answer in bytes.
    pub(crate) limit: usize,
}

/// The resource that a request is for.
#[derive(Clone)]
pub(crate) enum Place<'a> {
    /// A path within the repository, such as `manifests/v1`.
    Repository(&'a str),
    /// An address that the registry returned.
    Address(Url),
}

/// An answer with a meaningful status: found, unchanged, not found, or a bad request.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) address: Url,
    /// Description of the credentials that were used, for people.
    pub(crate) credentials: String,
}

/// The reason why an attempt failed.
pub(crate) enum Trouble {
    /// Another attempt may succeed, after the delay if the server requested one.
    Again {
        why: String,
        after: Option<Duration>,
    },
    /// Another attempt cannot succeed.
    Final(RegistryError),
}

pub(crate) struct Exchange {
    transport: Transport,
    authenticator: Authenticator,
    endpoints: Arc<Endpoints>,
    metrics: Metrics,
    request_timeout: Duration,
    /// Whether each host that may be used without TLS was last reached without TLS.
    without_tls: Mutex<HashMap<String, bool>>,
}

// === impl Exchange ===

impl Exchange {
    pub(crate) fn new(
        transport: Transport,
        authenticator: Authenticator,
        endpoints: Arc<Endpoints>,
        metrics: Metrics,
        request_timeout: Duration,
    ) -> Self {
        let without_tls = Mutex::default();
        Self {
            transport,
            authenticator,
            endpoints,
            metrics,
            request_timeout,
            without_tls,
        }
    }

    /// Sends a request until there is an answer or the attempts or the time are used up.
    pub(crate) async fn send(
        &self,
        target: &Target<'_>,
        ask: &Ask<'_>,
    ) -> Result<Answer, RegistryError> {
        for (attempt, backoff) in (1..).zip(retry::backoff()) {
            let (why, asked_for) = match self.authorised(target, ask).await {
                Ok(answer) if retry::is_worth_another_try(answer.status) => {
                    let why = format!("it answered {}{}", answer.status, said(&answer.body, ": "));
                    (why, retry::asked_for(&answer.headers, SystemTime::now()))
                }
                Ok(answer) if is_refusal(answer.status) => {
                    self.authenticator.forget(target).await;
                    return Err(target.refused(&answer.body, answer.credentials));
                }
                Ok(answer) => return Ok(answer),
                Err(Trouble::Again { why, after }) => (why, after),
                Err(Trouble::Final(error)) => return Err(error),
            };
            let delay = asked_for.unwrap_or(backoff);
            if attempt >= target.attempts || Instant::now() + delay >= target.until {
                return Err(target.unreachable(why, asked_for));
            }
            tracing::debug!(registry = target.endpoint.name, why, ?delay, "asking again");
            self.metrics.retry(&target.endpoint.name);
            tokio::time::sleep(delay).await;
        }
        Err(target.unreachable("it was never asked".to_owned(), None))
    }

    /// Sends a request with the last accepted authorization; if refused, answers one challenge.
    async fn authorised(&self, target: &Target<'_>, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let held = self.authenticator.held(target).await;
        let first = self.once(target, ask, held.as_deref()).await?;
        if first.status != StatusCode::UNAUTHORIZED {
            return Ok(first);
        }
        let held = match self.authenticator.answer(target, &first.headers).await? {
            Challenge::Ready(held) => held,
            Challenge::Token(request) => self.token(target, *request).await?,
            Challenge::Nothing { source } => {
                return Ok(Answer {
                    credentials: source,
                    ..first
                });
            }
        };
        let second = self.once(target, ask, Some(&held)).await?;
        if !is_refusal(second.status) {
            self.authenticator.keep(target, &held).await;
        }
        Ok(second)
    }

    async fn once(
        &self,
        target: &Target<'_>,
        ask: &Ask<'_>,
        held: Option<&Held>,
    ) -> Result<Answer, Trouble> {
        let endpoint = target.endpoint;
        let rest = match &ask.place {
            Place::Repository(rest) => *rest,
            Place::Address(address) => {
                return self
                    .at(target, ask, held, address.as_str())
                    .await
                    .map_err(Failed::trouble);
            }
        };
        // A host that may be used without TLS is tried with TLS first, and again after any failure.
        if !self.goes_without_tls(endpoint) {
            match self
                .at(target, ask, held, &endpoint.url("https", rest))
                .await
            {
                Err(Failed { no_tls: true, .. }) if endpoint.plain_http => {}
                outcome => return outcome.map_err(Failed::trouble),
            }
        }
        let outcome = self
            .at(target, ask, held, &endpoint.url("http", rest))
            .await;
        self.remember_tls(endpoint, outcome.is_ok());
        outcome.map_err(Failed::trouble)
    }

    async fn at(
        &self,
        target: &Target<'_>,
        ask: &Ask<'_>,
        held: Option<&Held>,
        address: &str,
    ) -> Result<Answer, Failed> {
        let client = self.transport.client(target.endpoint.loopback);
        let mut request = client.request(ask.method.clone(), address);
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &ask.body {
            request = request.body(body.clone());
        }
        if let Some(held) = held {
            request = held.apply(request);
        }
        let mut answer = self
            .perform(target, ask.operation, request, ask.limit)
            .await?;
        if let Some(held) = held {
            answer.credentials.clone_from(&held.source);
        }
        Ok(answer)
    }

    async fn token(&self, target: &Target<'_>, token: TokenRequest) -> Result<Arc<Held>, Trouble> {
        let realm = &token.realm;
        if realm.scheme() != "https" && !self.endpoints.allow_plain_http(realm) {
            return Err(target.final_trouble(format!("its token server {realm} has no TLS")));
        }
        let server = realm.host_str().unwrap_or_default().to_owned();
        let client = self.transport.client(self.endpoints.is_loopback(realm));
        let request = token.build(&client);
        let answer = self
            .perform(target, "token", request, TOKEN_LIMIT)
            .await
            .map_err(|failed| failed.of(&format!("its token server {server}")).trouble())?;
        match answer.status {
            status if status.is_success() => token
                .accept(&answer.body)
                .map_err(|why| target.final_trouble(format!("its token server {server} {why}"))),
            status if is_refusal(status) || status == StatusCode::BAD_REQUEST => {
                Err(Trouble::Final(target.refused(&answer.body, token.source)))
            }
            status => Err(Trouble::Again {
                why: format!("its token server {server} answered {status}"),
                after: retry::asked_for(&answer.headers, SystemTime::now()),
            }),
        }
    }

    /// Sends one request and reads the response, within the time and size limits.
    async fn perform(
        &self,
        target: &Target<'_>,
        operation: &'static str,
        request: RequestBuilder,
        limit: usize,
    ) -> Result<Answer, Failed> {
        let started = Instant::now();
        let left = target.until.saturating_duration_since(started);
        let outcome = request.timeout(left.min(self.request_timeout)).send().await;
        let status = outcome
            .as_ref()
            .ok()
            .map(|response| response.status().as_u16());
        let outcome = match outcome {
            Ok(response) => read(response, limit)
                .await
                .map_err(|error| error.of(target, operation)),
            Err(error) => Err(Failed {
                no_tls: speaks_no_tls(&error),
                trouble: Trouble::Again {
                    why: describe(&error),
                    after: None,
                },
            }),
        };
        self.metrics
            .request(&target.endpoint.name, operation, status, started.elapsed());
        outcome
    }

    fn goes_without_tls(&self, endpoint: &Endpoint) -> bool {
        let known = self
            .without_tls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        endpoint.plain_http && known.get(&endpoint.name).copied().unwrap_or(false)
    }

    fn remember_tls(&self, endpoint: &Endpoint, without: bool) {
        let mut known = self
            .without_tls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(endpoint.name.clone(), without);
    }
}

/// A failed request, and whether the server seems to have no TLS.
struct Failed {
    no_tls: bool,
    trouble: Trouble,
}

// === impl Failed ===

impl Failed {
    fn trouble(self) -> Trouble {
        self.trouble
    }

    /// Adds the name of a server that is not the registry itself.
    fn of(self, server: &str) -> Self {
        let trouble = match self.trouble {
            Trouble::Again { why, after } => Trouble::Again {
                why: format!("{server}: {why}"),
                after,
            },
            last => last,
        };
        Self { trouble, ..self }
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}
