//! A representative function pod for dry runs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use runner_core::{Digest, ImageReference};
use runner_pool::{Attempt, Create, Function, Settings, TemplateVersion, Time};

use super::{RenderOptions, render_pod};
use crate::Templates;

const IMAGE: &str = "example.com/sample/function:v1";
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Returns a function pod whose image does not exist.
#[must_use]
pub fn sample_pod(name: &str, templates: &Templates, options: &RenderOptions) -> Pod {
    let image: ImageReference = IMAGE.parse().expect("the constant is an image reference");
    let digest = Digest::parse(DIGEST).expect("the constant is a digest");
    let create = Create {
        name: name.into(),
        slot: name.into(),
        attempt: Attempt(0),
        function: Arc::new(Function::new(&image, digest, Settings::default())),
        template: TemplateVersion::new(&templates.for_pool(options), 0),
        reclaim_after: Time::default(),
    };
    let entrypoint = ["/function".to_owned()];
    render_pod(&create, templates, &entrypoint, None, None, options)
}
