//! Finds the entry of a docker config that applies to an image.
//!
//! The kubelet reads the same files for the same images, so its rules apply: an entry may name a
//! host or a path below it, the longest match has priority, and a part of the host may be `*`.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

/// The names of a config's entries; the `docker_credential` crate reads their contents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    #[serde(default)]
    auths: Option<BTreeMap<String, IgnoredAny>>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creds_store: Option<String>,
}

/// The place of an image's credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Nowhere,
    /// The credentials are under this key of `auths`.
    Entry(String),
    /// The credentials are provided by the helper of this key.
    Helper {
        key: String,
        helper: String,
    },
    /// The credentials are provided by the default helper.
    Store {
        helper: String,
    },
}

pub(super) fn place(text: &[u8], host: &str, repository: &str) -> serde_json::Result<Place> {
    let names: Names = serde_json::from_slice(text)?;
    let auths = names.auths.unwrap_or_default();
    let helpers = names.cred_helpers.unwrap_or_default();
    let best = auths
        .keys()
        .map(|key| (key, None))
        .chain(helpers.iter().map(|(key, helper)| (key, Some(helper))))
        .filter_map(|(key, helper)| Some((matched(key, host, repository)?, helper, key)))
        .max();
    Ok(match (best, names.creds_store) {
        (Some((_, Some(helper), key)), _) if !helper.is_empty() => Place::Helper {
            key: key.clone(),
            helper: helper.clone(),
        },
        (Some((_, _, key)), _) => Place::Entry(key.clone()),
        (None, Some(helper)) if !helper.is_empty() => Place::Store { helper },
        (None, _) => Place::Nowhere,
    })
}

/// Returns how closely a key matches a repository: length of its path, then whether the host has no
/// `*`.
fn matched(key: &str, host: &str, repository: &str) -> Option<(usize, bool)> {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (named, path) = key.split_once('/').unwrap_or((key, ""));
    let path = match path.trim_matches('/') {
        // Docker wrote such keys when registry addresses still contained a version.
        "v1" | "v2" => "",
        path => path,
    };
    let below = repository.strip_prefix(path)?;
    if !(path.is_empty() || below.is_empty() || below.starts_with('/')) {
        return None;
    }
    let exact = hub(named) == hub(host);
    (exact || has_shape(host, named)).then_some((path.len(), exact))
}

fn hub(host: &str) -> &str {
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

/// Returns whether a host matches a pattern.
///
/// `*` matches one part of a host or a piece of it: `*.example.com`, `eu-*.pkg.dev`.
fn has_shape(host: &str, shape: &str) -> bool {
    let fits = |part: &str, shape: &str| match shape.split_once('*') {
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
        None => part == shape,
    };
    shape.contains('*')
        && host.split('.').count() == shape.split('.').count()
        && host
            .split('.')
            .zip(shape.split('.'))
            .all(|(part, shape)| fits(part, shape))
}
