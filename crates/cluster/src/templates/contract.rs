//! Checks that the runner can use a pod template and a service template.

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::util::intstr::IntOrString};

use super::TemplateError;
use crate::names::{FUNCTION_CONTAINER, PORT, TOOLS, TOOLS_DIR};
use crate::objects::ServiceTemplateSpec;

/// Checks that a pod template has everything that the runner relies on.
pub(super) fn check(template: &PodTemplateSpec) -> Result<(), TemplateError> {
    let missing = |what: String| Err(TemplateError::Contract(what));
    let Some(spec) = &template.spec else {
        return missing("has no spec".to_owned());
    };
    let functions: Vec<_> = spec
        .containers
        .iter()
        .filter(|container| container.name == FUNCTION_CONTAINER)
        .collect();
    let [function] = functions[..] else {
        return missing(format!(
            "must have exactly one container named {FUNCTION_CONTAINER:?}, it has {}",
            functions.len()
        ));
    };
    let has_volume = spec
        .volumes
        .iter()
        .flatten()
        .any(|volume| volume.name == TOOLS);
    let mounts = function.volume_mounts.iter().flatten();
    let mounted = mounts.clone().find(|mount| mount.name == TOOLS);
    match (has_volume, mounted) {
        (false, Some(_)) => missing(format!(
            "mounts {TOOLS:?} in container {FUNCTION_CONTAINER:?} but has no such volume"
        )),
        // Commands in templates contain this path.
        (_, Some(mount)) if mount.mount_path.trim_end_matches('/') != TOOLS_DIR => {
            missing(format!(
                "must mount {TOOLS:?} at {TOOLS_DIR}, not at {}",
                mount.mount_path
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that services made from a template route [`PORT`] to the wrapper.
pub(super) fn check_service(template: &ServiceTemplateSpec) -> Result<(), TemplateError> {
    let wrapper = i32::from(PORT);
    let ports = template
        .spec
        .iter()
        .flat_map(|spec| spec.ports.iter().flatten());
    for port in ports.filter(|port| port.port == wrapper) {
        match &port.target_port {
            Some(IntOrString::Int(target)) if *target != wrapper => {
                return Err(TemplateError::Service(format!(
                    "sends port {PORT} to port {target} of the pods, where the wrapper does not \
                     listen: targetPort must be {PORT}"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({}), "has no spec")]
    #[case(json!({"spec": {"containers": [{"name": "main"}]}}), "exactly one container named \"function\", it has 0")]
    #[case(
        json!({"spec": {"containers": [{"name": "function", "volumeMounts": [{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}]}]}}),
        "has no such volume"
    )]
    #[case(
        json!({"spec": {
            "containers": [{"name": "function", "volumeMounts": [{"name": "wrapper-server-tools", "mountPath": "/x"}]}],
            "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
        }}),
        "not at /x"
    )]
    fn names_the_missing_part_of_a_pod_template(#[case] template: Value, #[case] says: &str) {
        let template = serde_json::from_value(template).unwrap();
        let error = check(&template).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn rejects_a_service_that_does_not_route_to_the_wrapper() {
        let to = |target: Value| {
            let template = json!({"spec": {"ports": [{"port": 9446, "targetPort": target}]}});
            check_service(&serde_json::from_value(template).unwrap())
        };
        assert_eq!(to(json!(9446)), Ok(()));
        assert_eq!(to(json!("grpc")), Ok(()));
        let error = to(json!(8080)).unwrap_err().to_string();
        assert!(error.contains("port 8080 of the pods"), "{error}");
        let other = json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}});
        assert_eq!(
            check_service(&serde_json::from_value(other).unwrap()),
            Ok(())
        );
    }
}
