//! Requests bearer tokens from a token server.

use std::{sync::Arc, time::Duration};

use docker_credential::DockerCredential;
use http_auth::ParamValue;
use reqwest::{Client, RequestBuilder, Url, header::CONTENT_TYPE};
use serde::Deserialize;

use super::{Authorization, AuthorizationHeader, expiry};
use crate::{
    client::{AttemptError, RequestContext},
    credentials::{FileVersions, FoundCredential},
};

const CLIENT_ID: &str = "krm-function-runner";
/// Lifetime of a token in seconds if the server does not name one, by the specification.
const DEFAULT_LIFETIME: u64 = 60;

/// A request for a bearer token.
pub(crate) struct TokenRequest {
    pub(crate) realm: Url,
    service: Option<String>,
    scope: String,
    credential: Option<DockerCredential>,
    pub(crate) source: String,
    file_versions: FileVersions,
}

#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

// === impl TokenRequest ===

impl TokenRequest {
    pub(super) fn new(
        context: &RequestContext<'_>,
        parameters: &[(&str, ParamValue<'_>)],
        found: FoundCredential,
        file_versions: FileVersions,
    ) -> Result<Self, AttemptError> {
        let parameter = |name: &str| {
            parameters
                .iter()
                .find(|(parameter, _)| parameter.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_unescaped())
        };
        let realm = parameter("realm").unwrap_or_default();
        let realm = Url::parse(&realm).map_err(|error| {
            context.permanent_error(format!("its token server {realm:?} is not a URL: {error}"))
        })?;
        Ok(Self {
            realm,
            service: parameter("service"),
            scope: parameter("scope").unwrap_or_else(|| context.endpoint.scope(context.push)),
            credential: found.credential,
            source: found.source,
            file_versions,
        })
    }

    /// Builds the request: GET, with a password or anonymous, or POST with a refresh token.
    pub(crate) fn build(&self, client: &Client) -> RequestBuilder {
        let mut url = self.realm.clone();
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = &self.service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", &self.scope);
        }
        match &self.credential {
            None => client.get(url),
            Some(DockerCredential::UsernamePassword(user, password)) => {
                client.get(url).basic_auth(user, Some(password))
            }
            Some(DockerCredential::IdentityToken(token)) => {
                url.query_pairs_mut()
                    .append_pair("grant_type", "refresh_token")
                    .append_pair("client_id", CLIENT_ID)
                    .append_pair("refresh_token", token);
                let form = url.query().unwrap_or_default().to_owned();
                client
                    .post(self.realm.clone())
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(form)
            }
        }
    }

    /// Parses the token server's response.
    pub(crate) fn accept(self, body: &[u8]) -> Result<Arc<Authorization>, String> {
        let response: TokenResponse =
            serde_json::from_slice(body).map_err(|_| "sent no token".to_owned())?;
        let token = response
            .token
            .or(response.access_token)
            .filter(|token| !token.is_empty())
            .ok_or("sent no token")?;
        let lifetime = Duration::from_secs(response.expires_in.unwrap_or(DEFAULT_LIFETIME));
        Ok(Arc::new(Authorization {
            header: AuthorizationHeader::Bearer(token),
            source: self.source,
            expires: Some(expiry(lifetime)),
            file_versions: self.file_versions,
        }))
    }
}
