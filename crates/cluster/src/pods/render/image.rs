//! Replaces the image of a container in a template.

use k8s_openapi::api::core::v1::Container;
use runner_core::ImageReference;

/// Sets the image of a container, and removes its pull policy if that is only a default.
///
/// The API server writes a pull policy into every template it stores: the default for the
/// template's image. Such a policy is not the author's choice, so it is removed and the API server
/// chooses the default for the new image. Otherwise the image `to-be-replaced` of most templates,
/// which has no tag, would make every pod start ask the registry for a digest that the node has.
pub(super) fn set_image(container: &mut Container, image: &str) {
    let replaced = container.image.as_deref().unwrap_or_default();
    let policy = container.image_pull_policy.as_deref();
    if policy == Some(default_policy(replaced)) {
        container.image_pull_policy = None;
    }
    container.image = Some(image.to_owned());
}

/// Returns the pull policy that Kubernetes sets by default: `Always` only for the tag `latest`.
fn default_policy(image: &str) -> &'static str {
    let image = image.parse::<ImageReference>();
    match image.as_ref().map(ImageReference::tag_or_latest) {
        Ok(tag) if tag != Some("latest") => "IfNotPresent",
        _ => "Always",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_pull_policy_only_if_it_is_not_the_default() {
        let digest = format!("example.com/fn@sha256:{}", "0".repeat(64));
        for (image, policy, kept) in [
            ("to-be-replaced", "Always", false),
            ("to-be-replaced", "IfNotPresent", true),
            ("to-be-replaced", "Never", true),
            ("example.com/fn:latest", "Always", false),
            ("example.com/fn:v1", "Always", true),
            ("example.com/fn:v1", "IfNotPresent", false),
            (&digest, "Always", true),
            ("", "Always", false),
        ] {
            let mut container = Container {
                image: Some(image.to_owned()),
                image_pull_policy: Some(policy.to_owned()),
                ..Container::default()
            };
            set_image(&mut container, "example.com/fn:v2");
            assert_eq!(
                container.image_pull_policy.is_some(),
                kept,
                "{image} {policy}"
            );
            assert_eq!(container.image.as_deref(), Some("example.com/fn:v2"));
        }
    }
}
