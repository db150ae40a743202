//! Image references in the usual notation: `[registry/]path[:tag][@digest]`.

use std::{fmt, str::FromStr};

const DEFAULT_REGISTRY: &str = "docker.io";
const OFFICIAL: &str = "library/";
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;

/// A parsed image reference, with Docker's defaults filled in (`docker.io`, `library/`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageReference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A content digest, `algorithm:hex`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(String);

/// An error that names the malformed part of an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed image {image:?}: {part} {problem}")]
pub struct BadImage {
    image: String,
    part: &'static str,
    problem: String,
}

// === impl ImageReference ===

impl ImageReference {
    /// Parses a reference; a bare name (without a slash) gets the default prefix first.
    pub fn qualified(image: &str, default_prefix: &str) -> Result<Self, BadImage> {
        let prefix = default_prefix.trim_end_matches('/');
        if image.contains('/') || image.is_empty() || prefix.is_empty() {
            image.parse()
        } else {
            format!("{prefix}/{image}").parse()
        }
    }

    /// Returns the registry host, with its port if one was given.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the path within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the last part of the path, which is the function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.repository
            .rsplit('/')
            .next()
            .unwrap_or(&self.repository)
    }

    /// Returns `registry/repository` without the last part of the path.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self.repository.rsplit_once('/') {
            Some((path, _)) => format!("{}/{path}", self.registry),
            None => self.registry.clone(),
        }
    }

    /// Returns the tag, if one was given.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the tag to request from a registry: `latest` if neither tag nor digest was given.
    #[must_use]
    pub fn tag_or_latest(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// Returns the digest, if one was given.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Returns the same image at another tag, without a digest.
    #[must_use]
    pub fn at_tag(&self, tag: &str) -> Self {
        Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        }
    }

    /// Returns the same image and tag, pinned to a digest.
    #[must_use]
    pub fn at_digest(&self, digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            ..self.clone()
        }
    }
}

impl FromStr for ImageReference {
    type Err = BadImage;

    fn from_str(image: &str) -> Result<Self, BadImage> {
        let bad = |part, problem: String| BadImage {
            image: image.to_owned(),
            part,
            problem,
        };
        if image.is_empty() {
            return Err(bad("name", "is empty".to_owned()));
        }
        let (rest, digest) = match image.split_once('@') {
            Some((rest, digest)) => (
                rest,
                Some(Digest::parse(digest).map_err(|why| bad("digest", why))?),
            ),
            None => (image, None),
        };
        // A colon after the last slash starts a tag; a colon before it starts a port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') && !tag.contains(']') => (name, Some(tag)),
            _ => (rest, None),
        };
        if let Some(tag) = tag {
            check_tag(tag).map_err(|why| bad("tag", why))?;
        }
        let (registry, path) = match name.split_once('/') {
            Some((host, path)) if is_host(host) => {
                check_host(host).map_err(|why| bad("registry", why))?;
                let host = if host == "index.docker.io" {
                    DEFAULT_REGISTRY
                } else {
                    host
                };
                (host, path)
            }
            _ => (DEFAULT_REGISTRY, name),
        };
        check_path(path).map_err(|why| bad("name", why))?;
        if registry.len() + 1 + path.len() > MAX_NAME {
            return Err(bad("name", format!("is longer than {MAX_NAME} characters")));
        }
        let repository = if registry == DEFAULT_REGISTRY && !path.contains('/') {
            format!("{OFFICIAL}{path}")
        } else {
            path.to_owned()
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

// === impl Digest ===

impl Digest {
    /// Parses `sha256:…` or `sha512:…`.
    ///
    /// # Errors
    /// If the digest is malformed: the problem, to be read after the word "digest".
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((algorithm, hex)) = text.split_once(':') else {
            return Err("has no algorithm: write sha256:<64 hex digits>".to_owned());
        };
        let digits = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            other => return Err(format!("uses {other:?}: only sha256 and sha512 are known")),
        };
        if hex.len() != digits || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format!(
                "must have {digits} lower-case hex digits after {algorithm}:"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the whole digest, `algorithm:hex`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the hex digits without the algorithm.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, hex)| hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether the first path part is a host, by Docker's rule.
fn is_host(first: &str) -> bool {
    first == "localhost"
        || first.contains(['.', ':', '['])
        || first.bytes().any(|b| b.is_ascii_uppercase())
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let Some((address, after)) = rest.split_once(']') else {
            return Err("has an IPv6 address without a closing bracket".to_owned());
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("has a malformed IPv6 address {address:?}"));
        }
        match after.strip_prefix(':') {
            Some(port) => (None, Some(port)),
            None if after.is_empty() => (None, None),
            None => return Err(format!("has {after:?} after the IPv6 address")),
        }
    } else {
        match host.split_once(':') {
            Some((name, port)) => (Some(name), Some(port)),
            None => (Some(host), None),
        }
    };
    if let Some(port) = port
        && port.parse::<u16>().is_err()
    {
        return Err(format!("has a malformed port {port:?}"));
    }
    let label_is_good = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match name {
        Some(name) if !name.split('.').all(label_is_good) => {
            Err(format!("{name:?} is not a host name"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_tag(tag: &str) -> Result<(), String> {
    if tag.is_empty() {
        return Err("is empty".to_owned());
    }
    if tag.len() > MAX_TAG {
        return Err(format!("is longer than {MAX_TAG} characters"));
    }
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !tag.bytes().next().is_some_and(word)
        || !tag.bytes().all(|b| word(b) || matches!(b, b'.' | b'-'))
    {
        return Err(format!(
            "{tag:?} may hold only letters, digits, '_', '.' and '-', starting with a letter, digit or '_'"
        ));
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("is empty".to_owned());
    }
    for part in path.split('/') {
        if part.is_empty() {
            return Err("has an empty part between slashes".to_owned());
        }
        if part.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(format!("has upper-case letters in {part:?}"));
        }
        if !part_is_good(part) {
            return Err(format!(
                "part {part:?} must be lower-case letters and digits, joined by one of '.', '_', '__' or dashes"
            ));
        }
    }
    Ok(())
}

/// Returns whether a path part matches `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`.
fn part_is_good(part: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !part.starts_with(alphanumeric) || !part.ends_with(alphanumeric) {
        return false;
    }
    part.split(alphanumeric)
        .filter(|separator| !separator.is_empty())
        .all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|b| b == b'-')
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[rstest]
    #[case("busybox", "docker.io", "library/busybox", None)]
    #[case("busybox:1.36", "docker.io", "library/busybox", Some("1.36"))]
    #[case("kpt/fn", "docker.io", "kpt/fn", None)]
    #[case("index.docker.io/kpt/fn", "docker.io", "kpt/fn", None)]
    #[case("ghcr.io/kptdev/a/b:v0.4.1", "ghcr.io", "kptdev/a/b", Some("v0.4.1"))]
    #[case("localhost/x", "localhost", "x", None)]
    #[case("localhost:5000/x", "localhost:5000", "x", None)]
    #[case("localhost:5000/x:y", "localhost:5000", "x", Some("y"))]
    #[case("[::1]:5000/x/y:z", "[::1]:5000", "x/y", Some("z"))]
    #[case("[::1]/x", "[::1]", "x", None)]
    #[case(
        "registry:5000/a__b/c-d.e:T_1",
        "registry:5000",
        "a__b/c-d.e",
        Some("T_1")
    )]
    fn parses_references_as_docker_does(
        #[case] image: &str,
        #[case] registry: &str,
        #[case] repository: &str,
        #[case] tag: Option<&str>,
    ) {
        let parsed: ImageReference = image.parse().unwrap();
        assert_eq!(
            (parsed.registry(), parsed.repository(), parsed.tag()),
            (registry, repository, tag)
        );
        assert_eq!(parsed.digest(), None);
    }

    #[test]
    fn accepts_a_tag_together_with_a_digest() {
        let parsed: ImageReference = format!("ghcr.io/x/fn:v1@{SHA}").parse().unwrap();
        assert_eq!(parsed.tag(), Some("v1"));
        assert_eq!(parsed.digest().unwrap().as_str(), SHA);
        assert_eq!(parsed.to_string(), format!("ghcr.io/x/fn:v1@{SHA}"));
    }

    #[rstest]
    #[case("", "name is empty")]
    #[case("x:", "tag is empty")]
    #[case("x:-a", "tag \"-a\" may hold")]
    #[case("ghcr.io/x/", "name has an empty part")]
    #[case("ghcr.io//x", "name has an empty part")]
    #[case("ghcr.io/X/y", "name has upper-case letters")]
    #[case("ghcr.io/x/y@sha256:abc", "digest must have 64")]
    #[case("ghcr.io/x/y@md5:abc", "digest uses \"md5\"")]
    #[case("ghcr.io/x/y@", "digest has no algorithm")]
    #[case("host:99999/x", "registry has a malformed port")]
    #[case("[::zz]:1/x", "registry has a malformed IPv6 address")]
    #[case("a b/x", "name part \"a b\" must be")]
    #[case("x..y/z.w/fn", "registry \"x..y\" is not a host name")]
    #[case("ghcr.io/x_._y", "name part \"x_._y\" must be")]
    fn names_the_malformed_part(#[case] image: &str, #[case] says: &str) {
        let error = image.parse::<ImageReference>().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[rstest]
    #[case("set-namespace:v0.4.1", "ghcr.io/kptdev/catalog/set-namespace:v0.4.1")]
    #[case("example/fn:v1", "docker.io/example/fn:v1")]
    fn only_a_bare_name_takes_the_default_prefix(#[case] image: &str, #[case] full: &str) {
        let parsed = ImageReference::qualified(image, "ghcr.io/kptdev/catalog/").unwrap();
        assert_eq!(parsed.to_string(), full);
    }

    #[test]
    fn name_and_prefix_split_at_the_last_slash() {
        let parsed: ImageReference = "ghcr.io/a/b/fn:v1".parse().unwrap();
        assert_eq!(
            (parsed.name(), parsed.prefix().as_str()),
            ("fn", "ghcr.io/a/b")
        );
    }

    proptest! {
        #[test]
        fn parsing_never_panics(image in "\\PC{0,80}") {
            let _ = image.parse::<ImageReference>();
        }

        #[test]
        fn displays_a_text_that_parses_back(image in "([a-z]{1,5}\\.io(:[1-9][0-9]{0,3})?/)?[a-z]{1,4}(/[a-z0-9]{1,4}){0,2}(:[A-Za-z0-9_][a-z.-]{0,5})?") {
            if let Ok(parsed) = image.parse::<ImageReference>() {
                prop_assert_eq!(parsed.to_string().parse::<ImageReference>().unwrap(), parsed);
            }
        }
    }
}
