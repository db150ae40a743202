//! The documents of the OCI image specification, with the fields that this crate writes.
//!
//! A fixed field order and sorted maps make the bytes, and so the digests, reproducible.

use std::collections::BTreeMap;

use serde::Serialize;

/// The settings with which a container of an image is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    /// User name or number, optionally with `:group`; empty means root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Environment variables, each as `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Program and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Arguments that a caller may replace, or the program if there is no entrypoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// Working directory of the program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// Labels of the image.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The platform of an image, with the names that Go uses, such as `linux` and `arm64`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Processor architecture, such as `amd64` or `arm64`.
    pub architecture: String,
    /// Operating system, such as `linux`.
    pub os: String,
    /// Variant of the architecture, such as `v8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct ImageConfig<'a> {
    pub(crate) created: &'a str,
    #[serde(flatten)]
    pub(crate) platform: &'a Platform,
    pub(crate) config: &'a Config,
    pub(crate) rootfs: RootFs<'a>,
}

#[derive(Serialize)]
pub(crate) struct RootFs<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) diff_ids: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest<'a> {
    pub(crate) schema_version: u32,
    pub(crate) media_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<&'static str>,
    pub(crate) config: Descriptor<'a>,
    pub(crate) layers: Vec<Descriptor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexDocument<'a> {
    pub(crate) schema_version: u32,
    pub(crate) media_type: &'static str,
    pub(crate) manifests: Vec<Descriptor<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor<'a> {
    pub(crate) media_type: &'static str,
    pub(crate) digest: &'a str,
    pub(crate) size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<&'a Platform>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<&'a str, &'a str>,
}

// === impl Platform ===

impl Platform {
    /// Returns the platform for Linux on this architecture.
    #[must_use]
    pub fn linux(architecture: &str) -> Self {
        Self {
            architecture: architecture.to_owned(),
            os: "linux".to_owned(),
            variant: None,
        }
    }
}

// === impl Descriptor ===

impl<'a> Descriptor<'a> {
    pub(crate) fn of(blob: &'a crate::Blob) -> Self {
        Self {
            media_type: blob.media_type(),
            digest: blob.digest(),
            size: blob.bytes().len(),
            artifact_type: None,
            platform: None,
            annotations: BTreeMap::new(),
        }
    }
}
