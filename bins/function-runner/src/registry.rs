//! Builds the registry client from the flags.

use anyhow::{Context, Result};
use runner_registry::{Options, Platform, Registry};

use crate::flags::RegistryFlags;

/// Returns a client for all registries; no registry is contacted yet.
pub(crate) fn from_flags(flags: &RegistryFlags) -> Result<Registry> {
    let mut options = Options {
        tag_ttl: flags.image_tag_ttl,
        insecure_registries: flags.insecure_registry.clone(),
        ..Options::default()
    };
    if let Some(platform) = &flags.image_platform {
        options.platform = platform
            .parse::<Platform>()
            .context("cannot use --image-platform")?;
    }
    for mirror in &flags.registry_mirror {
        let mirror = mirror.parse().context("cannot use --registry-mirror")?;
        options.mirrors.push(mirror);
    }
    if flags.enable_private_registries {
        options.private_credentials = Some(flags.registry_auth_secret_path.clone());
    }
    if flags.enable_private_registries_tls {
        options.ca = Some(flags.tls_secret_path.clone());
    }
    Registry::new(options).context("cannot set up registries")
}
