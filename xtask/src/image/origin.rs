//! Where an image comes from: version, commit and time, for its labels.

use std::{
    collections::BTreeMap,
    env,
    process::Command,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context;
use runner_devtools::{Remedy, failure, root};

/// Where an image comes from.
pub(crate) struct Origin {
    version: String,
    revision: String,
    seconds: u64,
}

// === impl Origin ===

impl Origin {
    /// The commit that is checked out. Its time stands for the time of building, which would make
    /// every image another; `SOURCE_DATE_EPOCH` overrides it.
    pub(crate) fn of_checkout() -> anyhow::Result<Self> {
        let seconds = match env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: git(&["rev-parse", "HEAD"])?,
            seconds: seconds
                .parse()
                .context("SOURCE_DATE_EPOCH is not a number of seconds")
                .remedy("unset SOURCE_DATE_EPOCH, or set it as `date +%s` prints it")?,
        })
    }

    #[cfg(test)]
    pub(crate) fn of_nothing() -> Self {
        Self {
            version: "0.0.0".to_owned(),
            revision: "none".to_owned(),
            seconds: 0,
        }
    }

    /// The version of everything here.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The time as the specification writes it.
    pub(crate) fn created(&self) -> String {
        let time = UNIX_EPOCH + Duration::from_secs(self.seconds);
        humantime::format_rfc3339_seconds(time).to_string()
    }

    /// The labels that every image has.
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
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(failure(
            format!("git {}: {}", arguments.join(" "), complaint.trim()),
            "build images in a git checkout with at least one commit",
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
