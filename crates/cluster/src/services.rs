//! Services of slots: rendering and observation.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{Service, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::core::ObjectMeta;
use runner_pool::PodName;

use crate::{IMAGE_LABEL, PORT, RenderOptions, Templates};

/// The observed state of a slot's service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceObservation {
    /// Name of the service, which is the slot's name.
    pub name: String,
    /// UID of the service.
    pub uid: String,
    /// Cluster IP of the service; `None` if the service is headless.
    pub cluster_ip: Option<IpAddr>,
}

/// Renders the service of a slot.
#[must_use]
pub fn render_service(slot: &PodName, templates: &Templates, options: &RenderOptions) -> Service {
    let template = templates.service.clone();
    let given = template.metadata.unwrap_or_default();
    let mut spec = template.spec.unwrap_or_default();
    let name = slot.as_str().to_owned();
    spec.selector = Some(BTreeMap::from([(IMAGE_LABEL.to_owned(), name.clone())]));
    spec.type_.get_or_insert_with(|| "ClusterIP".to_owned());
    if options.service_before_ready {
        spec.publish_not_ready_addresses.get_or_insert(true);
    }
    let port = i32::from(PORT);
    let ports = spec.ports.get_or_insert_default();
    if !ports.iter().any(|known| known.port == port) {
        ports.push(ServicePort {
            name: (!ports.is_empty()).then(|| "grpc".to_owned()),
            port,
            target_port: Some(IntOrString::Int(port)),
            ..ServicePort::default()
        });
    }
    let mut labels = given.labels.unwrap_or_default();
    labels.insert(IMAGE_LABEL.to_owned(), name.clone());
    Service {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            annotations: given.annotations,
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

// === impl ServiceObservation ===

impl ServiceObservation {
    /// Reads the state of a service.
    ///
    /// Returns `None` if the service does not select the slot of its own name, and so does not
    /// belong to a function.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let name = service.metadata.name.clone()?;
        if spec.selector.as_ref()?.get(IMAGE_LABEL) != Some(&name) {
            return None;
        }
        Some(Self {
            name,
            uid: service.metadata.uid.clone()?,
            cluster_ip: spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn publishes_unready_pods_only_with_service_before_ready() {
        let slot = PodName::from("fn-v1-1-01234567");
        let rendered = |service_before_ready| {
            let options = RenderOptions {
                service_before_ready,
                ..RenderOptions::default()
            };
            let service = render_service(&slot, &Templates::built_in(), &options);
            serde_json::to_value(service).unwrap()
        };
        let ordinary = rendered(false);
        assert!(ordinary["spec"]["publishNotReadyAddresses"].is_null());
        let service = rendered(true);
        let spec = &service["spec"];
        assert_eq!(spec["selector"], json!({IMAGE_LABEL: "fn-v1-1-01234567"}));
        assert_eq!(spec["type"], "ClusterIP");
        assert_eq!(spec["publishNotReadyAddresses"], true);
        assert_eq!(
            (&spec["ports"][0]["port"], &spec["ports"][0]["targetPort"]),
            (&json!(9446), &json!(9446))
        );
    }
}
