//! `krm image`: shows the image metadata that the runner uses.

use std::{fmt::Write as _, io::Write as _, path::PathBuf};

use clap::{Args, ValueEnum};
use runner_core::{ImageReference, Reason, TagConstraint, defaults};
use runner_registry::{ImageMetadata, Mirror, Options, Platform, Registry, RegistryError};
use serde_json::json;

use crate::failure::Failure;

/// Show what the runner would know of an image: digest, platform, entrypoint
///
/// The image's registry is asked as the runner does it. Credentials come from docker's and podman's
/// own files unless others are given; where they came from is shown, too.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Image {
    /// The image; a bare name takes the default prefix
    #[arg(value_name = "IMAGE")]
    image: String,

    /// Select among the image's tags: a semver constraint or an exact tag
    #[arg(long, value_name = "CONSTRAINT", value_parser = TagConstraint::parse)]
    tag: Option<TagConstraint>,

    /// Where bare image names come from
    #[arg(long, value_name = "PREFIX", default_value = defaults::IMAGE_PREFIX)]
    default_image_prefix: String,

    /// The platform to choose where the image is made for several (default: this machine's)
    #[arg(long, value_name = "OS/ARCH")]
    image_platform: Option<Platform>,

    /// How to show it
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    registry: RegistryOptions,
}

/// How registries are reached.
#[derive(Args, Debug)]
#[command(next_help_heading = "Registries")]
struct RegistryOptions {
    /// A docker config with credentials, such as the one mounted into the runner
    #[arg(long, value_name = "FILE")]
    registry_auth_secret_path: Option<PathBuf>,

    /// A file, or a directory with ca.crt, ca.pem, cacert.pem, ca-bundle.crt or root.crt, to trust
    /// besides the system's roots
    #[arg(long, value_name = "PATH")]
    tls_secret_path: Option<PathBuf>,

    /// Speak to this registry without TLS
    #[arg(long, value_name = "HOST")]
    insecure_registry: Vec<String>,

    /// Ask this mirror before the registry
    #[arg(long, value_name = "HOST=MIRROR")]
    registry_mirror: Vec<Mirror>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  What a function of the catalog starts:
    krm image set-namespace:v0.4.1

  Which version a constraint selects:
    krm image set-namespace --tag '>= 0.4.0 < 0.5.0'

  Whether the runner's credentials are good for a private registry:
    krm image registry.example.com/team/fn:v1 --registry-auth-secret-path ./config.json";

// === impl Image ===

impl Image {
    /// Looks the image up and shows its metadata.
    ///
    /// # Errors
    /// Returns a failure if the image reference is invalid or the registry returns no metadata.
    pub async fn run(&self) -> Result<(), Failure> {
        let image = ImageReference::qualified(&self.image, &self.default_image_prefix)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let registry = Registry::new(self.options())
            .map_err(|error| Failure::failed(format!("cannot ask registries: {error}")))?;
        let found = registry
            .inspect(&image, self.tag.as_ref(), None)
            .await
            .map_err(|error| failure(&error))?;
        let text = match self.output {
            Format::Text => text(&found),
            Format::Json => json(&found),
        };
        anstream::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write: {error}")))
    }

    fn options(&self) -> Options {
        let defaults = Options::default();
        Options {
            platform: self.image_platform.clone().unwrap_or(defaults.platform),
            private_credentials: self.registry.registry_auth_secret_path.clone(),
            ca: self.registry.tls_secret_path.clone(),
            insecure_registries: self.registry.insecure_registry.clone(),
            mirrors: self.registry.registry_mirror.clone(),
            ..defaults
        }
    }
}

fn failure(error: &RegistryError) -> Failure {
    let message = error.to_string();
    match error.reason() {
        Reason::RegistryUnreachable => Failure::unreachable(message),
        Reason::RegistryAuth => Failure::failed(message)
            .hint("log in with docker or podman, or name a docker config with --registry-auth-secret-path"),
        _ => Failure::failed(message),
    }
}

/// Formats one fact per line; an empty field is shown as the container runtime's default.
fn text(found: &ImageMetadata) -> String {
    let or = |value: &str, default: &str| {
        if value.is_empty() {
            default.to_owned()
        } else {
            value.to_owned()
        }
    };
    let lines = [
        ("image", found.reference.to_string()),
        ("digest", found.digest.to_string()),
        ("platform", found.platform.to_string()),
        ("entrypoint", quoted(&found.entrypoint)),
        ("directory", or(&found.working_dir, "/")),
        ("user", or(&found.user, "root")),
        ("access", found.credential_source.clone()),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(
            text,
            "{:<12}{}",
            format!("{name}:"),
            crate::report::printable(&value)
        );
    }
    for variable in &found.env {
        let _ = writeln!(text, "{:<12}{}", "env:", crate::report::printable(variable));
    }
    text
}

fn json(found: &ImageMetadata) -> String {
    let document = json!({
        "image": found.reference.to_string(),
        "digest": found.digest.as_str(),
        "platform": found.platform.to_string(),
        "entrypoint": found.entrypoint,
        "workingDir": found.working_dir,
        "user": found.user,
        "env": found.env,
        "access": found.credential_source,
    });
    format!("{document:#}\n")
}

/// Joins words, quoted so that the line can be pasted into a shell.
fn quoted(words: &[String]) -> String {
    let plain = |word: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
        !word.is_empty() && word.chars().all(good)
    };
    let quote = |word: &String| {
        if plain(word) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        let words = ["/fn", "--name=x", "", "it's", "a b"].map(str::to_owned);
        assert_eq!(quoted(&words), r"/fn --name=x '' 'it'\''s' 'a b'");
    }
}
