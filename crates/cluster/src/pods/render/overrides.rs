//! Applies the template overrides of a `FunctionConfig`.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use runner_config::PodOverrides;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    names::{COPY_CONTAINER, FUNCTION_CONTAINER},
    objects::{ContainerOverrides, TemplateOverrides},
};

/// Returns a number that changes with the overrides; 0 means that there are none.
#[must_use]
pub fn overrides_fingerprint(overrides: Option<&PodOverrides>) -> u64 {
    match overrides.map(PodOverrides::as_json) {
        None | Some("{}") => 0,
        Some(json) => first_bytes_of_hash(json.as_bytes()).max(1),
    }
}

/// Returns a number that changes with the value.
///
/// Every replica computes the same number, because fields serialize in a fixed order.
pub(crate) fn fingerprint_of(value: &impl Serialize) -> u64 {
    first_bytes_of_hash(&serde_json::to_vec(value).unwrap_or_default())
}

fn first_bytes_of_hash(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(Sha256::digest(text)) {
        *to = from;
    }
    u64::from_be_bytes(first)
}

pub(super) fn apply(spec: &mut PodSpec, overrides: &TemplateOverrides) {
    if let Some(account) = &overrides.service_account_name {
        spec.service_account_name = Some(account.clone());
        spec.service_account = None;
    }
    if let Some(context) = &overrides.security_context {
        spec.security_context = Some(context.clone());
    }
    let copying = spec.init_containers.iter_mut().flatten();
    if let Some(given) = &overrides.init_container {
        copying
            .filter(|container| container.name == COPY_CONTAINER)
            .for_each(|container| apply_to(container, given));
    }
    if let Some(given) = &overrides.container {
        spec.containers
            .iter_mut()
            .filter(|container| container.name == FUNCTION_CONTAINER)
            .for_each(|container| apply_to(container, given));
    }
}

fn apply_to(container: &mut Container, given: &ContainerOverrides) {
    if let Some(resources) = &given.resources {
        container.resources = Some(resources.clone());
    }
    let env = container.env.get_or_insert_default();
    for variable in &given.env {
        env.retain(|known| known.name != variable.name);
        env.push(variable.clone());
    }
    if !given.env_from.is_empty() {
        let sources = container.env_from.get_or_insert_default();
        sources.extend(given.env_from.iter().cloned());
    }
}
