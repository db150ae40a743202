//! Finds the entry of a docker config that applies to an image.
//!
//! The kubelet reads the same files for the same images, so its rules apply: an entry may name a
//! host or a path below it, the longest match has priority, and a part of the host may be `*`.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

/// The keys of a docker config; the `docker_credential` crate reads the credentials.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DockerConfig {
    #[serde(default)]
    auths: Option<BTreeMap<String, IgnoredAny>>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creds_store: Option<String>,
}

/// The location of an image's credentials in a docker config.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CredentialLocation {
    /// The config has no credentials for the image.
    None,
    /// The credentials are under this key of `auths`.
    Auths(String),
    /// The credentials are provided by the helper of this key.
    CredHelper { key: String, helper: String },
    /// The credentials are provided by the default helper.
    CredsStore { helper: String },
}

/// Returns where a docker config has the credentials of a repository.
pub(super) fn locate(
    text: &[u8],
    host: &str,
    repository: &str,
) -> serde_json::Result<CredentialLocation> {
    let config: DockerConfig = serde_json::from_slice(text)?;
    let auths = config.auths.unwrap_or_default();
    let helpers = config.cred_helpers.unwrap_or_default();
    let best = auths
        .keys()
        .map(|key| (key, None))
        .chain(helpers.iter().map(|(key, helper)| (key, Some(helper))))
        .filter_map(|(key, helper)| Some((match_rank(key, host, repository)?, helper, key)))
        .max();
    Ok(match (best, config.creds_store) {
        (Some((_, Some(helper), key)), _) if !helper.is_empty() => CredentialLocation::CredHelper {
            key: key.clone(),
            helper: helper.clone(),
        },
        (Some((_, _, key)), _) => CredentialLocation::Auths(key.clone()),
        (None, Some(helper)) if !helper.is_empty() => CredentialLocation::CredsStore { helper },
        (None, _) => CredentialLocation::None,
    })
}

/// Returns the rank of a key that matches a repository: the length of its path, then whether its
/// host has no `*`.
fn match_rank(key: &str, host: &str, repository: &str) -> Option<(usize, bool)> {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (key_host, path) = key.split_once('/').unwrap_or((key, ""));
    let path = match path.trim_matches('/') {
        // Docker wrote such keys when registry addresses still contained a version.
        "v1" | "v2" => "",
        path => path,
    };
    let below = repository.strip_prefix(path)?;
    if !(path.is_empty() || below.is_empty() || below.starts_with('/')) {
        return None;
    }
    let exact = canonical_host(key_host) == canonical_host(host);
    (exact || matches_pattern(host, key_host)).then_some((path.len(), exact))
}

/// Returns the name of Docker Hub in images for its other host names.
fn canonical_host(host: &str) -> &str {
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

/// Returns whether a host matches a pattern.
///
/// `*` matches one part of a host or a piece of it: `*.example.com`, `eu-*.pkg.dev`.
fn matches_pattern(host: &str, pattern: &str) -> bool {
    let part_matches = |part: &str, pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
        None => part == pattern,
    };
    pattern.contains('*')
        && host.split('.').count() == pattern.split('.').count()
        && host
            .split('.')
            .zip(pattern.split('.'))
            .all(|(part, pattern)| part_matches(part, pattern))
}
