//! Endpoints of an image's registry: hosts, mirrors, and permission to use plain HTTP.

use std::{collections::HashSet, net::IpAddr, str::FromStr};

use reqwest::Url;
use runner_core::ImageReference;

const DOCKER_HUB: &str = "docker.io";
/// API host of Docker Hub, which differs from the host in image names.
const DOCKER_HUB_API: &str = "registry-1.docker.io";

/// A registry to try before the one that an image names: `host=mirror[/prefix]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    host: String,
    mirror: String,
    prefix: String,
}

/// The error of a mirror that is not written as `host=mirror[/prefix]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed registry mirror {text:?}: {why}")]
pub struct BadMirror {
    text: String,
    why: &'static str,
}

/// A host that serves an image, and the image's repository there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host name as written in images and credentials.
    pub(crate) name: String,
    pub(crate) repository: String,
    host: String,
    pub(crate) plain_http: bool,
    pub(crate) loopback: bool,
}

/// The configuration of mirrors and insecure registries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endpoints {
    mirrors: Vec<Mirror>,
    insecure: HashSet<String>,
}

// === impl Mirror ===

impl FromStr for Mirror {
    type Err = BadMirror;

    fn from_str(text: &str) -> Result<Self, BadMirror> {
        let bad = |why| BadMirror {
            text: text.to_owned(),
            why,
        };
        let (host, mirror) = text
            .split_once('=')
            .ok_or_else(|| bad("write host=mirror, as in docker.io=mirror.example.com"))?;
        if mirror.starts_with("http://") {
            return Err(bad(
                "leave http:// out and name the mirror as an insecure registry",
            ));
        }
        let mirror = mirror
            .strip_prefix("https://")
            .unwrap_or(mirror)
            .trim_end_matches('/');
        let (mirror, prefix) = mirror.split_once('/').unwrap_or((mirror, ""));
        if host.is_empty() || mirror.is_empty() {
            return Err(bad("neither host nor mirror may be empty"));
        }
        // The image parser validates the host and the path.
        let probe = if prefix.is_empty() {
            "x".to_owned()
        } else {
            prefix.to_owned()
        };
        let image: ImageReference = format!("{mirror}/{probe}")
            .parse()
            .map_err(|_| bad("the mirror is not a host with an optional path"))?;
        if image.registry() != mirror && !is_loopback(mirror) {
            return Err(bad("the mirror must be a host name with a dot or a port"));
        }
        Ok(Self {
            host: host.to_owned(),
            mirror: mirror.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

// === impl Endpoints ===

impl Endpoints {
    pub(crate) fn new(mirrors: Vec<Mirror>, insecure: impl IntoIterator<Item = String>) -> Self {
        Self {
            mirrors,
            insecure: insecure.into_iter().collect(),
        }
    }

    /// Returns the mirrors to try for an image before the registry that it names, in order.
    pub(crate) fn mirrors(&self, image: &ImageReference) -> impl Iterator<Item = Endpoint> {
        self.mirrors
            .iter()
            .filter(|mirror| mirror.host == image.registry())
            .map(|mirror| match mirror.prefix.as_str() {
                "" => self.at(&mirror.mirror, image.repository().to_owned()),
                prefix => self.at(&mirror.mirror, format!("{prefix}/{}", image.repository())),
            })
    }

    /// Returns the registry that an image names.
    pub(crate) fn origin(&self, image: &ImageReference) -> Endpoint {
        self.at(image.registry(), image.repository().to_owned())
    }

    /// Returns whether credentials and content may be sent to a URL unencrypted.
    pub(crate) fn allow_plain_http(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        let with_port = url.port().map(|port| format!("{host}:{port}"));
        is_loopback(host)
            || self.insecure.contains(host)
            || with_port.is_some_and(|host| self.insecure.contains(&host))
    }

    /// Returns whether an address is on this machine.
    pub(crate) fn is_loopback(&self, url: &Url) -> bool {
        url.host_str().is_some_and(is_loopback)
    }

    fn at(&self, name: &str, repository: String) -> Endpoint {
        let host = if name == DOCKER_HUB {
            DOCKER_HUB_API
        } else {
            name
        };
        let loopback = is_loopback(name);
        Endpoint {
            name: name.to_owned(),
            repository,
            host: host.to_owned(),
            plain_http: loopback
                || self.insecure.contains(name)
                || self.insecure.contains(without_port(name)),
            loopback,
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// Returns the URL of a path in the repository, such as `manifests/v1`.
    pub(crate) fn url(&self, scheme: &str, rest: &str) -> String {
        format!("{scheme}://{}/v2/{}/{rest}", self.host, self.repository)
    }

    /// Returns the scope to request if the registry does not name one: pull, or pull and push.
    pub(crate) fn scope(&self, push: bool) -> String {
        let actions = if push { "pull,push" } else { "pull" };
        format!("repository:{}:{actions}", self.repository)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(host: &str) -> bool {
    let name = without_port(host)
        .trim_start_matches('[')
        .trim_end_matches(']');
    name == "localhost"
        || name.ends_with(".localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn urls(endpoints: &Endpoints, image: &str) -> Vec<String> {
        let image = image.parse().unwrap();
        let origin = endpoints.origin(&image);
        let all = endpoints.mirrors(&image).chain([origin]);
        all.map(|endpoint| endpoint.url("https", "tags/list"))
            .collect()
    }

    #[rstest]
    #[case("ghcr.io/a/b:v1", "https://ghcr.io/v2/a/b/tags/list")]
    #[case("busybox", "https://registry-1.docker.io/v2/library/busybox/tags/list")]
    #[case("[::1]:5000/x", "https://[::1]:5000/v2/x/tags/list")]
    fn uses_the_registry_that_an_image_names(#[case] image: &str, #[case] url: &str) {
        assert_eq!(urls(&Endpoints::default(), image), [url]);
    }

    #[test]
    fn tries_mirrors_first_and_in_order() {
        let mirrors = [
            "docker.io=mirror.example.com/hub",
            "docker.io=second.example.com:5000",
        ]
        .map(|text| text.parse().unwrap());
        let endpoints = Endpoints::new(mirrors.into(), []);
        assert_eq!(
            urls(&endpoints, "a/b"),
            [
                "https://mirror.example.com/v2/hub/a/b/tags/list",
                "https://second.example.com:5000/v2/a/b/tags/list",
                "https://registry-1.docker.io/v2/a/b/tags/list",
            ]
        );
        assert_eq!(urls(&endpoints, "ghcr.io/a/b").len(), 1);
    }

    #[rstest]
    #[case("localhost:5000/x", true)]
    #[case("localhost/x", true)]
    #[case("127.0.0.2:80/x", true)]
    #[case("[::1]:5000/x", true)]
    #[case("plain.example.com/x", true)]
    #[case("plain.example.com:5000/x", true)]
    #[case("port.example.com:5000/x", true)]
    #[case("port.example.com/x", false)]
    #[case("127.0.0.1.example.com/x", false)]
    #[case("ghcr.io/x", false)]
    fn allows_plain_http_for_loopback_and_named_hosts(#[case] image: &str, #[case] allowed: bool) {
        let insecure = ["plain.example.com", "port.example.com:5000"].map(str::to_owned);
        let endpoints = Endpoints::new(Vec::new(), insecure);
        assert_eq!(
            endpoints.origin(&image.parse().unwrap()).plain_http,
            allowed
        );
    }

    #[rstest]
    #[case("docker.io", "write host=mirror")]
    #[case("=mirror.example.com", "may be empty")]
    #[case("docker.io=", "may be empty")]
    #[case("docker.io=http://mirror.example.com", "leave http:// out")]
    #[case("docker.io=mirror", "with a dot or a port")]
    #[case("docker.io=mirror.example.com/UP", "not a host with an optional path")]
    fn explains_a_malformed_mirror(#[case] text: &str, #[case] expected: &str) {
        let error = text.parse::<Mirror>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
