//! Pushes images to a registry: the few requests of the distribution protocol that takes.

use std::{fs, time::Duration};

use anyhow::{Context, Result, bail};
use reqwest::{
    StatusCode,
    blocking::{Client, Response},
    header::{CONTENT_TYPE, LOCATION},
};
use runner_image::{Blob, Image, Index};

use crate::registries::PrivateRegistry;

/// A registry as the one who pushes sees it.
#[derive(Debug)]
pub struct Target {
    client: Client,
    base: String,
    login: Option<(String, String)>,
}

// === impl Target ===

impl Target {
    /// A registry on loopback, without TLS and password.
    pub fn open(host: &str) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = Client::builder().timeout(LIMIT).build()?;
        Ok(Self {
            client,
            base: format!("http://{host}"),
            login: None,
        })
    }

    /// A registry with a password and its own authority.
    pub fn private(registry: &PrivateRegistry) -> Result<Self> {
        let pem = fs::read(&registry.ca).context("cannot read the CA of the private registry")?;
        let ca = reqwest::Certificate::from_pem(&pem)?;
        // The one provider there is; an earlier call may have said so already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = Client::builder()
            .timeout(LIMIT)
            .tls_certs_only([ca])
            .build()?;
        Ok(Self {
            client,
            base: format!("https://{}", registry.host),
            login: Some((registry.user.clone(), registry.password.clone())),
        })
    }

    /// Pushes an image for one platform.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) -> Result<()> {
        for blob in image.blobs() {
            self.blob(repository, blob)?;
        }
        self.manifest(repository, tag, image.manifest())
    }

    /// Pushes the images of several platforms under one tag.
    pub fn push_index(&self, repository: &str, tag: &str, index: &Index) -> Result<()> {
        for image in index.images() {
            let own = image.manifest().digest().to_owned();
            self.push(repository, &own, image)?;
        }
        self.manifest(repository, tag, index.document())
    }

    fn blob(&self, repository: &str, blob: &Blob) -> Result<()> {
        let blobs = format!("{}/v2/{repository}/blobs", self.base);
        let known = self.send(self.client.head(format!("{blobs}/{}", blob.digest())))?;
        if known.status() == StatusCode::OK {
            return Ok(());
        }
        let session = self.send(self.client.post(format!("{blobs}/uploads/")))?;
        let session = expect(session, StatusCode::ACCEPTED)?;
        let place = session
            .headers()
            .get(LOCATION)
            .context("an upload without a location")?;
        let place = session.url().join(place.to_str()?)?;
        let upload = self
            .client
            .put(place)
            .query(&[("digest", blob.digest())])
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(blob.bytes().clone());
        expect(self.send(upload)?, StatusCode::CREATED).map(drop)
    }

    fn manifest(&self, repository: &str, name: &str, manifest: &Blob) -> Result<()> {
        let upload = self
            .client
            .put(format!("{}/v2/{repository}/manifests/{name}", self.base))
            .header(CONTENT_TYPE, manifest.media_type())
            .body(manifest.bytes().clone());
        expect(self.send(upload)?, StatusCode::CREATED).map(drop)
    }

    fn send(&self, request: reqwest::blocking::RequestBuilder) -> Result<Response> {
        let request = match &self.login {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        };
        Ok(request.send()?)
    }
}

const LIMIT: Duration = Duration::from_secs(60);

fn expect(response: Response, wanted: StatusCode) -> Result<Response> {
    let status = response.status();
    if status != wanted {
        let url = response.url().clone();
        bail!(
            "{url}: {status}, {}",
            response.text().unwrap_or_default().trim()
        );
    }
    Ok(response)
}
