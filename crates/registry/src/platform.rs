//! The platform of an image, with Go's names.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// Operating system, architecture and variant: `linux/arm64/v8`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Platform {
    /// Operating system, such as `linux`.
    #[serde(default)]
    pub os: String,
    /// Architecture, such as `amd64` or `arm64`.
    #[serde(default)]
    pub architecture: String,
    /// Variant, such as `v7` or `v8`; most architectures have none.
    #[serde(default)]
    pub variant: Option<String>,
}

/// The error of a platform that is not written as `os/architecture[/variant]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed platform {0:?}: write os/architecture or os/architecture/variant")]
pub struct BadPlatform(String);

// === impl Platform ===

impl Platform {
    /// Returns the rank of an image for `other` on this platform: 2 for the same platform, 1 if only
    /// one of them has a variant, `None` if it cannot run.
    pub(crate) fn rank(&self, other: &Self) -> Option<u8> {
        if (&self.os, &self.architecture) != (&other.os, &other.architecture) {
            return None;
        }
        match (self.canonical_variant(), other.canonical_variant()) {
            (ours, theirs) if ours == theirs => Some(2),
            (_, None) | (None, _) => Some(1),
            _ => None,
        }
    }

    /// Returns the variant, or `None` for the only variant of 64-bit ARM, which is usually left
    /// out.
    fn canonical_variant(&self) -> Option<&str> {
        self.variant.as_deref().filter(|variant| {
            !variant.is_empty() && (self.architecture.as_str(), *variant) != ("arm64", "v8")
        })
    }
}

impl Default for Platform {
    /// Returns Linux on the architecture of this program.
    fn default() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", None),
            "x86" => ("386", None),
            "aarch64" => ("arm64", None),
            "arm" => ("arm", Some("v7".to_owned())),
            "powerpc64" => ("ppc64le", None),
            "loongarch64" => ("loong64", None),
            same => (same, None),
        };
        Self {
            os: "linux".to_owned(),
            architecture: architecture.to_owned(),
            variant,
        }
    }
}

impl FromStr for Platform {
    type Err = BadPlatform;

    fn from_str(text: &str) -> Result<Self, BadPlatform> {
        let mut parts = text.split('/').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None)
                if !os.is_empty() && !architecture.is_empty() && variant.as_deref() != Some("") =>
            {
                Ok(Self {
                    os,
                    architecture,
                    variant,
                })
            }
            _ => Err(BadPlatform(text.to_owned())),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("linux/amd64", "linux/amd64", Some(2))]
    #[case("linux/amd64", "linux/arm64", None)]
    #[case("linux/amd64", "windows/amd64", None)]
    #[case("linux/arm64", "linux/arm64/v8", Some(2))]
    #[case("linux/arm/v7", "linux/arm/v7", Some(2))]
    #[case("linux/arm/v7", "linux/arm", Some(1))]
    #[case("linux/arm/v7", "linux/arm/v6", None)]
    #[case("linux/arm", "linux/arm/v7", Some(1))]
    fn ranks_an_equal_platform_highest(
        #[case] ours: Platform,
        #[case] theirs: Platform,
        #[case] rank: Option<u8>,
    ) {
        assert_eq!(ours.rank(&theirs), rank);
    }

    #[rstest]
    #[case("linux")]
    #[case("linux/")]
    #[case("/amd64")]
    #[case("linux/arm/")]
    #[case("linux/arm/v7/x")]
    #[case("")]
    fn quotes_a_malformed_platform(#[case] text: &str) {
        let error = text.parse::<Platform>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }

    #[test]
    fn displays_a_platform_as_it_was_parsed() {
        for text in ["linux/amd64", "linux/arm/v7"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
    }
}
