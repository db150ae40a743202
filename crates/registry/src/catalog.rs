//! The public catalogs of KRM functions.

use runner_core::{ImageReference, defaults};

/// Catalogs whose images anybody can pull; credentials of a private registry are not used for them.
const PUBLIC: [&str; 2] = ["gcr.io/kpt-fn", defaults::IMAGE_PREFIX];

/// Returns whether an image belongs to a public catalog.
#[must_use]
pub fn is_public(image: &ImageReference) -> bool {
    let name = format!("{}/{}", image.registry(), image.repository());
    PUBLIC.iter().any(|catalog| {
        let below = name.strip_prefix(catalog);
        below.is_some_and(|below| below.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_only_images_of_the_public_catalogs() {
        for (image, public) in [
            ("gcr.io/kpt-fn/set-labels:v1", true),
            ("ghcr.io/kptdev/krm-functions-catalog/set-labels:v1", true),
            ("ghcr.io/kptdev/krm-functions-catalog-private/fn:v1", false),
            ("ghcr.io/kptdev/other:v1", false),
            ("example.com/gcr.io/kpt-fn/set-labels:v1", false),
        ] {
            assert_eq!(is_public(&image.parse().unwrap()), public, "{image}");
        }
    }
}
