//! The documents of an image, as far as the runner uses them.
//!
//! Unused fields are not parsed: an image that violates the specification elsewhere still runs.

use runner_core::Digest;
use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha512};

use crate::Platform;

/// Media types that a tag may refer to.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const CONFIG_MEDIA_TYPES: [&str; 3] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
    // Written by some early Docker tools.
    "application/octet-stream",
];

/// The document that a tag or digest refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// The document lists images for several platforms.
    Index(Vec<Descriptor>),
    /// The document describes one image by the digest of its config.
    Image { config: Digest },
}

/// An entry of an index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) digest: Digest,
    pub(crate) platform: Option<Platform>,
}

/// The part of an image's config that defines how its program is started.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) platform: Option<Platform>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) working_dir: String,
    pub(crate) user: String,
    pub(crate) env: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestDocument {
    schema_version: Option<u32>,
    manifests: Option<Vec<DescriptorDocument>>,
    config: Option<DescriptorDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DescriptorDocument {
    media_type: Option<String>,
    digest: String,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct ConfigDocument {
    #[serde(flatten)]
    platform: Option<Platform>,
    config: Option<ConfigSection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct ConfigSection {
    entrypoint: Option<StringList>,
    cmd: Option<StringList>,
    working_dir: Option<String>,
    user: Option<String>,
    env: Option<Vec<String>>,
}

/// A list of strings; Docker has always accepted a single string as a list of one.
#[derive(Deserialize)]
#[serde(untagged)]
enum StringList {
    Single(String),
    List(Vec<String>),
}

// === impl Manifest ===

impl Manifest {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, String> {
        let document: ManifestDocument = serde_json::from_slice(body)
            .map_err(|error| format!("its manifest is malformed: {error}"))?;
        if let Some(manifests) = document.manifests {
            let entries = manifests.into_iter().map(|entry| {
                Ok(Descriptor {
                    digest: digest(&entry.digest)?,
                    platform: entry.platform,
                })
            });
            return Ok(Self::Index(entries.collect::<Result<_, String>>()?));
        }
        let Some(config) = document.config else {
            return Err(match document.schema_version {
                Some(1) => "its manifest is of Docker's schema 1, which no runtime runs".to_owned(),
                _ => "its manifest names neither a config nor other manifests".to_owned(),
            });
        };
        match config.media_type.as_deref() {
            Some(media_type) if !CONFIG_MEDIA_TYPES.contains(&media_type) => Err(format!(
                "it is no container image: its config is {media_type:?}"
            )),
            _ => Ok(Self::Image {
                config: digest(&config.digest)?,
            }),
        }
    }
}

/// Returns the entry of an index that fits a platform best.
pub(crate) fn best_entry<'a>(
    entries: &'a [Descriptor],
    platform: &Platform,
) -> Option<&'a Descriptor> {
    entries
        .iter()
        // Of equal entries the first is chosen, as in other tools; `max_by_key` would choose the
        // last.
        .rev()
        .filter_map(|entry| Some((platform.rank(entry.platform.as_ref()?)?, entry)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, entry)| entry)
}

// === impl Config ===

impl Config {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, String> {
        let document: ConfigDocument = serde_json::from_slice(body)
            .map_err(|error| format!("its config is malformed: {error}"))?;
        let section = document.config.unwrap_or_default();
        Ok(Self {
            platform: document
                .platform
                .filter(|platform| !platform.architecture.is_empty()),
            entrypoint: combine(section.entrypoint, section.cmd),
            working_dir: section.working_dir.unwrap_or_default(),
            user: section.user.unwrap_or_default(),
            env: section.env.unwrap_or_default(),
        })
    }
}

/// Combines entrypoint and command as container runtimes do: the command follows, or replaces a
/// missing entrypoint.
fn combine(entrypoint: Option<StringList>, cmd: Option<StringList>) -> Vec<String> {
    let words = |words: Option<StringList>| match words {
        Some(StringList::Single(word)) => vec![word],
        Some(StringList::List(words)) => words,
        None => Vec::new(),
    };
    let mut entrypoint = words(entrypoint);
    // An empty string removes the entrypoint of a base image.
    if entrypoint == [""] {
        entrypoint.clear();
    }
    entrypoint.extend(words(cmd));
    entrypoint
}

/// Computes the digest of content with the algorithm of another digest.
pub(crate) fn digest_like(other: &Digest, content: &[u8]) -> Digest {
    if other.as_str().starts_with("sha512:") {
        hex_digest("sha512", &Sha512::digest(content))
    } else {
        sha256(content)
    }
}

pub(crate) fn sha256(content: &[u8]) -> Digest {
    hex_digest("sha256", &Sha256::digest(content))
}

fn hex_digest(algorithm: &str, hash: &[u8]) -> Digest {
    Digest::parse(&format!("{algorithm}:{}", hex::encode(hash))).expect("a hash in hex is a digest")
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text)
        .map_err(|why| format!("its manifest refers to {text:?}, whose digest {why}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn entry(digit: char, platform: &str) -> Descriptor {
        let digest = Digest::parse(&format!("sha256:{}", digit.to_string().repeat(64))).unwrap();
        Descriptor {
            digest,
            platform: platform.parse().ok(),
        }
    }

    #[rstest]
    #[case(r#""Entrypoint":["/fn"],"Cmd":["a","b"]"#, &["/fn", "a", "b"])]
    #[case(r#""Entrypoint":["/fn"]"#, &["/fn"])]
    #[case(r#""Entrypoint":null,"Cmd":["node","x.js"]"#, &["node", "x.js"])]
    #[case(r#""Entrypoint":[""],"Cmd":["sh"]"#, &["sh"])]
    #[case(r#""Entrypoint":"/fn","Cmd":"a""#, &["/fn", "a"])]
    #[case("", &[])]
    fn combines_entrypoint_and_command_as_container_runtimes_do(
        #[case] section: &str,
        #[case] expected: &[&str],
    ) {
        let config = format!(r#"{{"os":"linux","architecture":"amd64","config":{{{section}}}}}"#);
        assert_eq!(
            Config::parse(config.as_bytes()).unwrap().entrypoint,
            expected
        );
    }

    #[test]
    fn parses_a_config_without_a_section() {
        assert_eq!(Config::parse(b"{}").unwrap(), Config::default());
        assert_eq!(
            Config::parse(br#"{"config":null}"#).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn chooses_the_best_fit_and_the_first_of_equals() {
        let entries = [
            entry('1', "unknown/unknown"),
            entry('2', "windows/amd64"),
            entry('3', "linux/arm64/v8"),
            entry('4', "linux/arm"),
            entry('5', "linux/arm/v7"),
            entry('6', "linux/amd64"),
            entry('7', "linux/amd64"),
            entry('8', "none"),
        ];
        let chosen = |platform: &str| {
            let entry = best_entry(&entries, &platform.parse().unwrap())?;
            entry.digest.hex().chars().next()
        };
        assert_eq!(chosen("linux/amd64"), Some('6'));
        assert_eq!(chosen("linux/arm64"), Some('3'));
        assert_eq!(chosen("linux/arm/v7"), Some('5'));
        assert_eq!(chosen("linux/arm/v6"), Some('4'));
        assert_eq!(chosen("linux/s390x"), None);
    }

    #[rstest]
    #[case("[]", "its manifest is malformed")]
    #[case(r#"{"schemaVersion":1}"#, "schema 1")]
    #[case(r#"{"schemaVersion":2}"#, "neither a config nor other manifests")]
    #[case(r#"{"config":{"digest":"sha256:12"}}"#, "whose digest must have 64")]
    #[case(
        r#"{"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"x"}}"#,
        "it is no container image"
    )]
    fn rejects_a_document_that_is_not_an_image(#[case] body: &str, #[case] expected: &str) {
        let error = Manifest::parse(body.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn computes_digests_with_the_given_algorithm() {
        assert_eq!(digest_like(&Digest::parse(SHA).unwrap(), b""), sha256(b""));
        let sha512 = Digest::parse(&format!("sha512:{}", "0".repeat(128))).unwrap();
        assert!(
            digest_like(&sha512, b"")
                .as_str()
                .starts_with("sha512:cf83e1357eefb8bd")
        );
    }
}
