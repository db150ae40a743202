//! Security defaults for every function pod; a template may override each of them.

use k8s_openapi::api::core::v1::{Capabilities, Container, PodSpec, SeccompProfile};

/// Sets the security defaults that the template leaves open.
pub(super) fn harden(spec: &mut PodSpec) {
    spec.automount_service_account_token.get_or_insert(false);
    spec.enable_service_links.get_or_insert(false);
    let context = spec.security_context.get_or_insert_default();
    context
        .seccomp_profile
        .get_or_insert_with(|| SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        });
    for container in spec.init_containers.iter_mut().flatten() {
        confine(container);
    }
    spec.containers.iter_mut().for_each(confine);
}

fn confine(container: &mut Container) {
    let context = container.security_context.get_or_insert_default();
    // The API server refuses a privileged container with allowPrivilegeEscalation: false.
    if context.privileged != Some(true) {
        context.allow_privilege_escalation.get_or_insert(false);
    }
    context.capabilities.get_or_insert_with(|| Capabilities {
        drop: Some(vec!["ALL".to_owned()]),
        ..Capabilities::default()
    });
}
