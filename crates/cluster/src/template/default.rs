//! The built-in templates.

use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec, ServiceSpec};
use kube::core::ObjectMeta;
use runner_config::objects::{ServiceTemplate, ServiceTemplateSpec};
use serde_json::json;

use crate::names::{
    COPY_CONTAINER, FUNCTION_CONTAINER, POD_TEMPLATE, PORT, SAFE_TO_EVICT, SERVICE_TEMPLATE, TOOLS,
    TOOLS_DIR, WRAPPER_HOME,
};

/// Replaced when a pod is made; an object that is stored must name some image.
const REPLACED: &str = "to-be-replaced";

/// The built-in pod template, as an object to store.
pub(crate) fn pod_template_object() -> PodTemplate {
    PodTemplate {
        metadata: named(POD_TEMPLATE),
        template: Some(pod_template()),
    }
}

/// The built-in service template, as an object to store.
pub(crate) fn service_template_object() -> ServiceTemplate {
    ServiceTemplate::new(SERVICE_TEMPLATE, service_template())
}

/// The built-in pod template. What hardens it is added to every pod whose template is silent, so
/// that it need not be repeated here.
pub(crate) fn pod_template() -> PodTemplateSpec {
    let template = json!({
        "metadata": {"annotations": {SAFE_TO_EVICT: "true"}},
        "spec": {
            "initContainers": [{
                "name": COPY_CONTAINER,
                "image": REPLACED,
                "command": ["cp", "-a", format!("{WRAPPER_HOME}/."), TOOLS_DIR],
                "volumeMounts": [{"name": TOOLS, "mountPath": TOOLS_DIR}],
            }],
            "containers": [{
                "name": FUNCTION_CONTAINER,
                "image": REPLACED,
                "command": [format!("{TOOLS_DIR}/wrapper-server")],
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

/// The built-in service template: everything that matters is filled in when a service is made.
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
