//! A token server like those of cloud registries.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::json;

use super::USER;
use crate::http_server::{Reply, Request, Server};

/// A token server that accepts only [`USER`], by password or by refresh token.
pub struct TokenServer {
    server: Server,
    certificate: String,
}

struct Signer {
    key: EcdsaKeyPair,
    certificate: String,
    lifetime: Duration,
}

// === impl TokenServer ===

impl TokenServer {
    /// Service name in the tokens.
    pub const SERVICE: &str = "test-registry";
    /// Issuer name in the tokens.
    pub const ISSUER: &str = "test-issuer";
    /// The only refresh token that the server accepts.
    pub const REFRESH: &str = "a-refresh-token";

    /// Starts a server whose tokens are valid for `lifetime`.
    pub async fn start(lifetime: Duration) -> Self {
        let pair = KeyPair::generate().expect("a key pair");
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&pair).expect("a certificate");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pair.serialize_der())
            .expect("a key of that kind");
        let signer = Signer {
            key,
            certificate: STANDARD.encode(certificate.der()),
            lifetime,
        };
        let server = Server::start(move |request| signer.answer(request)).await;
        Self {
            server,
            certificate: certificate.pem(),
        }
    }

    /// Returns the number of token requests received so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.server.requests().len()
    }

    /// Returns the URL for token requests.
    #[must_use]
    pub fn realm(&self) -> String {
        format!("http://{}/token", self.server.host())
    }

    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }
}

// === impl Signer ===

impl Signer {
    fn answer(&self, request: &Request) -> Reply {
        let form = String::from_utf8_lossy(&request.body).into_owned();
        let password = format!(
            "Basic {}",
            STANDARD.encode(format!("{}:{}", USER.0, USER.1))
        );
        let known = match request.method.as_str() {
            "POST" => parameter(&form, "refresh_token").as_deref() == Some(TokenServer::REFRESH),
            _ => request.header("authorization") == Some(password.as_str()),
        };
        if !known {
            return Reply::new(401, r#"{"details":"wrong user or password"}"#);
        }
        let query = request
            .path
            .split_once('?')
            .map_or(form.as_str(), |(_, query)| query);
        let scope = parameter(query, "scope").unwrap_or_default();
        let token = self.token(&scope);
        let answer = json!({"token": token, "expires_in": self.lifetime.as_secs()});
        Reply::new(200, answer.to_string())
    }

    fn token(&self, scope: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock after 1970")
            .as_secs();
        let mut parts = scope.split(':');
        let (kind, name) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let actions: Vec<_> = parts.next().unwrap_or("").split(',').collect();
        let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [self.certificate]});
        let claims = json!({
            "iss": TokenServer::ISSUER, "aud": TokenServer::SERVICE, "sub": USER.0,
            "nbf": now - 10, "iat": now, "exp": now + self.lifetime.as_secs(), "jti": "1",
            "access": [{"type": kind, "name": name, "actions": actions}],
        });
        let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(header), encode(claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), text.as_bytes())
            .expect("a signature");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// Returns a parameter of a query or form, with the escapes that occur in scopes decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let value = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(
        value
            .replace("%3A", ":")
            .replace("%2F", "/")
            .replace("%2C", ","),
    )
}
