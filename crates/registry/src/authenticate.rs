//! Answers authentication challenges of registries, and caches accepted authorizations.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use docker_credential::DockerCredential;
use moka::future::Cache;
use reqwest::{
    RequestBuilder,
    header::{HeaderMap, WWW_AUTHENTICATE},
};
use runner_core::ImageReference;

use crate::{
    Keychain,
    client::{AttemptError, RequestContext},
    credentials::FileVersions,
    is_public,
};

mod token;

pub(crate) use token::TokenRequest;

/// Maximum number of cached authorizations.
const MAX_CACHED_AUTHORIZATIONS: u64 = 1_000;
/// Maximum time (24 h) for which a token is used.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The value of an `Authorization` header. Not printable: it contains secrets.
pub(crate) enum AuthorizationHeader {
    Basic { user: String, password: String },
    Bearer(String),
}

/// An authorization that was accepted before, or is to be tried.
pub(crate) struct Authorization {
    header: AuthorizationHeader,
    /// Description of the source of the credentials, for people.
    pub(crate) source: String,
    expires: Option<Instant>,
    /// Versions of the credential files that the authorization was made from.
    file_versions: FileVersions,
}

/// The response to an authentication challenge.
pub(crate) enum ChallengeResponse {
    /// The request is to be repeated with this authorization.
    Authorize(Arc<Authorization>),
    /// A token must be requested from the token server first.
    RequestToken(Box<TokenRequest>),
    /// There are no credentials that fit the challenge.
    NoCredentials { source: String },
}

/// The credentials of all registries, and the authorizations that were accepted.
pub(crate) struct Authenticator {
    keychain: Keychain,
    /// Used instead of `keychain` for all but the images of the public catalogs.
    private: Option<Keychain>,
    /// Accepted authorizations by host and scope.
    accepted: Cache<(String, String), Arc<Authorization>>,
}

// === impl Authorization ===

impl Authorization {
    pub(crate) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.header {
            AuthorizationHeader::Basic { user, password } => {
                request.basic_auth(user, Some(password))
            }
            AuthorizationHeader::Bearer(token) => request.bearer_auth(token),
        }
    }
}

// === impl Authenticator ===

impl Authenticator {
    pub(crate) fn new(keychain: Keychain, private: Option<Keychain>) -> Self {
        Self {
            keychain,
            private,
            accepted: Cache::new(MAX_CACHED_AUTHORIZATIONS),
        }
    }

    /// Returns the authorization that was last accepted for this repository, if it is still valid.
    ///
    /// Tokens expire, and credentials become invalid when their file changes.
    pub(crate) async fn cached(&self, context: &RequestContext<'_>) -> Option<Arc<Authorization>> {
        let authorization = self.accepted.get(&key(context)).await?;
        let expired = authorization.expires.is_some_and(|at| at <= Instant::now());
        let unchanged = authorization.file_versions == self.keychain(context.image).file_versions();
        (!expired && unchanged).then_some(authorization)
    }

    /// Caches an authorization for the next request.
    pub(crate) async fn store(
        &self,
        context: &RequestContext<'_>,
        authorization: &Arc<Authorization>,
    ) {
        let authorization = Arc::clone(authorization);
        self.accepted.insert(key(context), authorization).await;
    }

    /// Drops an authorization that was refused.
    pub(crate) async fn remove(&self, context: &RequestContext<'_>) {
        self.accepted.invalidate(&key(context)).await;
    }

    /// Returns the response to the challenges of a 401.
    ///
    /// Bearer has priority over basic: a registry that offers both expects the password to be sent
    /// to the token server only.
    pub(crate) async fn respond(
        &self,
        context: &RequestContext<'_>,
        headers: &HeaderMap,
    ) -> Result<ChallengeResponse, AttemptError> {
        let keychain = self.keychain(context.image);
        let file_versions = keychain.file_versions();
        let found = keychain
            .find(&context.endpoint.name, &context.endpoint.repository)
            .await;
        let mut basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = value.to_str().unwrap_or_default();
            for challenge in http_auth::parse_challenges(text).unwrap_or_default() {
                if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    let request =
                        TokenRequest::new(context, &challenge.params, found, file_versions)?;
                    return Ok(ChallengeResponse::RequestToken(Box::new(request)));
                }
                basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            }
        }
        Ok(match found.credential {
            Some(DockerCredential::UsernamePassword(user, password)) if basic => {
                ChallengeResponse::Authorize(Arc::new(Authorization {
                    header: AuthorizationHeader::Basic { user, password },
                    source: found.source,
                    expires: None,
                    file_versions,
                }))
            }
            Some(DockerCredential::IdentityToken(_)) if basic => ChallengeResponse::NoCredentials {
                source: format!(
                    "{}, which is a token: this registry requires a password",
                    found.source
                ),
            },
            _ => ChallengeResponse::NoCredentials {
                source: found.source,
            },
        })
    }

    fn keychain(&self, image: &ImageReference) -> &Keychain {
        match &self.private {
            Some(private) if !is_public(image) => private,
            _ => &self.keychain,
        }
    }
}

fn key(context: &RequestContext<'_>) -> (String, String) {
    (
        context.endpoint.name.clone(),
        context.endpoint.scope(context.push),
    )
}

/// Returns the time until which a token is used.
///
/// This is 10 % before it expires, so that it does not expire in transit, and at most
/// [`MAX_TOKEN_LIFETIME`] from now: the server's value could overflow an `Instant`.
fn expiry(lifetime: Duration) -> Instant {
    Instant::now() + lifetime.min(MAX_TOKEN_LIFETIME).mul_f64(0.9)
}
