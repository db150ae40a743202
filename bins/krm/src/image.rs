//! `krm image`: shows the image metadata that the runner uses.

use std::{fmt::Write as _, io::Write as _, path::PathBuf};

use clap::{Args, ValueEnum};
use runner_core::{ImageReference, Reason, TagConstraint, defaults};
use runner_registry::{ImageMetadata, Mirror, Options, Platform, Registry, RegistryError};
use serde_json::json;

use crate::failure::Failure;

/// Show the metadata of an image that the runner uses: digest, platform, entrypoint
///
/// Queries the registry of the image as the runner does. Credentials come from the files of docker
/// and podman unless another file is given; their source is shown as well.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Image {
    /// Image; a name without a slash gets the default prefix
    #[arg(value_name = "IMAGE")]
    image: String,

    /// Tag of the image, or a semver constraint that selects one
    #[arg(long, value_name = "CONSTRAINT", value_parser = TagConstraint::parse)]
    tag: Option<TagConstraint>,

    /// Prefix of image names without a slash
    #[arg(long, value_name = "PREFIX", default_value = defaults::IMAGE_PREFIX)]
    default_image_prefix: String,

    /// Platform to select if the image is for several [default: that of this machine]
    #[arg(long, value_name = "OS/ARCH")]
    image_platform: Option<Platform>,

    /// Output format
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    registry: RegistryOptions,
}

/// Access to registries.
#[derive(Args, Debug)]
#[command(next_help_heading = "Registries")]
struct RegistryOptions {
    /// Docker config with credentials, such as the one mounted into the runner
    #[arg(long, value_name = "FILE")]
    registry_auth_secret_path: Option<PathBuf>,

    /// Certificates to trust in addition to those of the system: a file, or a directory with
    /// ca.crt, ca.pem, cacert.pem, ca-bundle.crt or root.crt
    #[arg(long, value_name = "PATH")]
    tls_secret_path: Option<PathBuf>,

    /// Registry to connect to without TLS; may be given several times
    #[arg(long, value_name = "HOST")]
    insecure_registry: Vec<String>,

    /// Mirror to query before a registry; may be given several times
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
  # Show the entrypoint of a function of the catalog
  krm image set-namespace:v0.4.1

  # Show the version that a constraint selects
  krm image set-namespace --tag '>= 0.4.0 < 0.5.0'

  # Check the credentials of the runner for a private registry
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
            .map_err(|error| Failure::failed(format!("cannot query registries: {error}")))?;
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
