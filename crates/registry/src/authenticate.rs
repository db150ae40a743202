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
    credentials::Stamp,
    exchange::{Target, Trouble},
    is_public,
};

mod token;

pub(crate) use token::TokenRequest;

const HELD_AT_MOST: u64 = 1_000;
const LONGEST_HELD: Duration = Duration::from_secs(24 * 60 * 60);

/// The authorization of a request. Not printable: it contains secrets.
pub(crate) enum Authorization {
    Basic { user: String, password: String },
    Bearer(String),
}

/// An authorization that was accepted before, or is to be tried.
pub(crate) struct Held {
    authorization: Authorization,
    /// Description of the source of the credentials, for people.
    pub(crate) source: String,
    expires: Option<Instant>,
    stamp: Stamp,
}

/// The response to an authentication challenge.
pub(crate) enum Answer {
    /// The request is to be repeated with this authorization.
    Ready(Arc<Held>),
    /// A token must be requested from the token server first.
    Token(Box<TokenRequest>),
    /// There are no credentials that fit the challenge.
    Nothing { source: String },
}

pub(crate) struct Authenticator {
    keychain: Keychain,
    private: Option<Keychain>,
    held: Cache<(String, String), Arc<Held>>,
}

// === impl Authorization ===

impl Authorization {
    fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Basic { user, password } => request.basic_auth(user, Some(password)),
            Self::Bearer(token) => request.bearer_auth(token),
        }
    }
}

// === impl Held ===

impl Held {
    pub(crate) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        self.authorization.apply(request)
    }
}

// === impl Authenticator ===

impl Authenticator {
    pub(crate) fn new(keychain: Keychain, private: Option<Keychain>) -> Self {
        Self {
            keychain,
            private,
            held: Cache::new(HELD_AT_MOST),
        }
    }

    /// Returns the authorization that was last accepted for this repository, if it is still valid.
    ///
    /// Tokens expire, and credentials become invalid when their file changes.
    pub(crate) async fn held(&self, target: &Target<'_>) -> Option<Arc<Held>> {
        let held = self.held.get(&key(target)).await?;
        let expired = held.expires.is_some_and(|at| at <= Instant::now());
        (!expired && held.stamp == self.keychain(target.image).stamp()).then_some(held)
    }

    /// Caches an authorization for the next request.
    pub(crate) async fn keep(&self, target: &Target<'_>, held: &Arc<Held>) {
        self.held.insert(key(target), Arc::clone(held)).await;
    }

    /// Drops an authorization that was refused.
    pub(crate) async fn forget(&self, target: &Target<'_>) {
        self.held.invalidate(&key(target)).await;
    }

    /// Returns the response to the challenges of a 401.
    ///
    /// Bearer has priority over basic: a registry that offers both expects the password to be sent
    /// to the token server only.
    pub(crate) async fn answer(
        &self,
        target: &Target<'_>,
        headers: &HeaderMap,
    ) -> Result<Answer, Trouble> {
        let keychain = self.keychain(target.image);
        let stamp = keychain.stamp();
        let found = keychain
            .find(&target.endpoint.name, &target.endpoint.repository)
            .await;
        let mut basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = value.to_str().unwrap_or_default();
            for challenge in http_auth::parse_challenges(text).unwrap_or_default() {
                if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    let request = TokenRequest::new(target, &challenge.params, found, stamp)?;
                    return Ok(Answer::Token(Box::new(request)));
                }
                basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            }
        }
        Ok(match found.credential {
            Some(DockerCredential::UsernamePassword(user, password)) if basic => {
                let authorization = Authorization::Basic { user, password };
                let source = found.source;
                Answer::Ready(Arc::new(Held {
                    authorization,
                    source,
                    expires: None,
                    stamp,
                }))
            }
            Some(DockerCredential::IdentityToken(_)) if basic => Answer::Nothing {
                source: format!(
                    "{}, which is a token: this registry wants a password",
                    found.source
                ),
            },
            _ => Answer::Nothing {
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

fn key(target: &Target<'_>) -> (String, String) {
    (
        target.endpoint.name.clone(),
        target.endpoint.scope(target.push),
    )
}

/// Returns the time until which a token is used.
///
/// This is 10 % before it expires, so that it does not expire in transit, and at most
/// [`LONGEST_HELD`] from now: the server's value could overflow an `Instant`.
fn expiry(lifetime: Duration) -> Instant {
    Instant::now() + lifetime.min(LONGEST_HELD).mul_f64(0.9)
}
