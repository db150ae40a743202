//! The origin of an image for its labels: version, commit and time.

use std::{collections::BTreeMap, env, process::Command};

use anyhow::Context;
use jiff::Timestamp;
use runner_devtools::{Remedy, failure, root};

/// The version, commit and time that an image is built from.
pub(crate) struct Origin {
    version: String,
    revision: String,
    created: Timestamp,
}

// === impl Origin ===

impl Origin {
    /// Returns the origin for the commit that is checked out.
    ///
    /// The time is that of the commit, or `SOURCE_DATE_EPOCH` if set. The time of the build would
    /// make every image different.
    pub(crate) fn from_checkout() -> anyhow::Result<Self> {
        let seconds = match env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let created = seconds.parse().ok();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: git(&["rev-parse", "HEAD"])?,
            created: created
                .and_then(|seconds| Timestamp::from_second(seconds).ok())
                .context("SOURCE_DATE_EPOCH is not a number of seconds")
                .remedy("unset SOURCE_DATE_EPOCH, or set it as `date +%s` prints it")?,
        })
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            version: "0.0.0".to_owned(),
            revision: "none".to_owned(),
            created: Timestamp::UNIX_EPOCH,
        }
    }

    /// Returns the version of the workspace.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the time in RFC 3339 format, as the OCI specification requires.
    pub(crate) fn created(&self) -> String {
        self.created.to_string()
    }

    /// Returns the labels that every image has.
    pub(crate) fn labels(&self, title: &str, description: &str) -> BTreeMap<String, String> {
        [
            ("created", self.created().as_str()),
            ("description", description),
            ("licenses", env!("CARGO_PKG_LICENSE")),
            ("revision", &self.revision),
            ("title", title),
            ("version", &self.version),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.to_owned()))
        .collect()
    }
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .current_dir(root())
        .args(arguments)
        .output()
        .context("cannot run git")
        .remedy("on Debian: apt-get install git")?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(failure(
            format!("git {}: {}", arguments.join(" "), message.trim()),
            "build images in a git checkout with at least one commit",
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
