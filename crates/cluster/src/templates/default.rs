//! The built-in templates.

use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec, ServiceSpec};
use kube::core::ObjectMeta;
use serde_json::json;

use crate::names::{
    COPY_CONTAINER, FUNCTION_CONTAINER, PORT, SAFE_TO_EVICT, TOOLS, TOOLS_DIR, WRAPPER_HOME,
};
use crate::objects::{ServiceTemplate, ServiceTemplateSpec};

/// Image in stored templates, which must have one; replaced when a pod is made.
const PLACEHOLDER_IMAGE: &str = "to-be-replaced";

/// Returns the built-in pod template as an object to store.
pub(crate) fn pod_template_object(name: &str) -> PodTemplate {
    PodTemplate {
        metadata: named(name),
        template: Some(pod_template()),
    }
}

/// Returns the built-in service template as an object to store.
pub(crate) fn service_template_object(name: &str) -> ServiceTemplate {
    ServiceTemplate::new(name, service_template())
}

/// Returns the built-in pod template.
///
/// It has no security settings: `render/harden.rs` adds their defaults to every pod.
pub(crate) fn pod_template() -> PodTemplateSpec {
    let template = json!({
        "metadata": {"annotations": {SAFE_TO_EVICT: "true"}},
        "spec": {
            "initContainers": [{
                "name": COPY_CONTAINER,
                "image": PLACEHOLDER_IMAGE,
                "command": ["cp", "-a", format!("{WRAPPER_HOME}/."), TOOLS_DIR],
                "volumeMounts": [{"name": TOOLS, "mountPath": TOOLS_DIR}],
            }],
            "containers": [{
                "name": FUNCTION_CONTAINER,
                "image": PLACEHOLDER_IMAGE,
                "command": [format!("{TOOLS_DIR}/wrapper-server")],
                // No limits: the memory that a function needs depends on its packages, and a
                // function that worked without a limit must not be killed by a built-in one.
                "resources": {"requests": {"cpu": "25m", "memory": "64Mi"}},
                "readinessProbe": {
                    "exec": {"command": [format!("{TOOLS_DIR}/grpc-health-probe"), "-addr", format!("localhost:{PORT}")]},
                    "timeoutSeconds": 5,
                },
                "volumeMounts": [{"name": TOOLS, "mountPath": TOOLS_DIR}],
            }],
            "volumes": [{"name": TOOLS, "emptyDir": {}}],
        },
    });
    serde_json::from_value(template).expect("the built-in template is a template")
}

/// Returns the built-in pod template of version 0.1.0, which had no resource requests.
///
/// It is still stored in clusters.
pub(super) fn first_pod_template() -> PodTemplateSpec {
    let mut template = pod_template();
    let containers = template
        .spec
        .iter_mut()
        .flat_map(|spec| &mut spec.containers);
    containers.for_each(|container| container.resources = None);
    template
}

/// Returns the built-in service template; selector and port are set when a service is rendered.
pub(crate) fn service_template() -> ServiceTemplateSpec {
    ServiceTemplateSpec {
        metadata: None,
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            ..ServiceSpec::default()
        }),
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}
