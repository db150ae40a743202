//! Templates of function pods and their services, in every form that installations use.

mod built_in;
mod contract;
mod default;
#[cfg(test)]
mod installations;
mod source;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplate, PodTemplateSpec, Service};
use runner_core::with_causes;
use serde::de::DeserializeOwned;

use crate::objects::{ServiceTemplate, ServiceTemplateSpec};
use crate::{ApiError, RenderOptions, pods::fingerprint_of};

pub use source::{MissingTemplates, TemplateObjects, TemplateSource};

pub(crate) use default::{pod_template, service_template};

/// A validated pair of a pod template and a service template.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates {
    /// The template of pods.
    pub pod: PodTemplateSpec,
    /// The template of services.
    pub service: ServiceTemplateSpec,
    /// The resourceVersion of the object with the pod template, which earlier runners use too.
    pub version: Arc<str>,
}

/// The reason why a template cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text of a ConfigMap key is not an object of the expected kind.
    #[error("key {key:?} of the template ConfigMap is no {kind}")]
    Malformed {
        /// Key in the ConfigMap.
        key: &'static str,
        /// Expected kind.
        kind: &'static str,
        /// Error of the parser.
        #[source]
        error: Arc<serde_saphyr::Error>,
    },
    /// The ConfigMap does not exist or cannot be read.
    #[error("cannot read the pod template from ConfigMap {namespace}/{name}")]
    Unreadable {
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
        /// Error of the API server.
        #[source]
        error: ApiError,
    },
    /// A template object does not exist and is not created.
    #[error(
        "{kind} {namespace}/{name} cannot be used ({why}) and --skip-template-creation forbids \
         to create it: apply it, or remove the flag"
    )]
    Missing {
        /// `PodTemplate` or `ServiceTemplate`.
        kind: String,
        /// The pod namespace.
        namespace: String,
        /// Name of the object.
        name: String,
        /// Reason why the object cannot be used.
        why: String,
    },
    /// The ConfigMap lacks this key.
    #[error("the template ConfigMap has no key {0:?}")]
    NoKey(&'static str),
    /// The pod template lacks something that the runner relies on.
    #[error("the pod template {0}")]
    Contract(String),
    /// Services made from the template would not route to the wrapper.
    #[error("the service template {0}")]
    Service(String),
}

// === impl Templates ===

impl Templates {
    /// Returns the templates for clusters in which none exist and none can be created.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            pod: pod_template(),
            service: service_template(),
            version: Arc::from("built-in"),
        }
    }

    /// Returns whether the pod template is the built-in one of this or an earlier version.
    ///
    /// It may be stored in the cluster, but not edited.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        built_in::is_built_in(&self.pod)
    }

    /// Returns whether services made from the template have no cluster IP.
    #[must_use]
    pub fn service_is_headless(&self) -> bool {
        let spec = self.service.spec.as_ref();
        spec.is_some_and(|spec| {
            spec.cluster_ip.as_deref() == Some("None")
                || spec.type_.as_deref() == Some("ExternalName")
        })
    }

    /// Reads the templates from objects in the pod namespace.
    ///
    /// A missing object is replaced by the built-in template.
    pub fn of_objects(
        pod: Option<&PodTemplate>,
        service: Option<&ServiceTemplate>,
    ) -> Result<Self, TemplateError> {
        let version = pod.and_then(|object| object.metadata.resource_version.as_deref());
        let templates = Self {
            pod: match pod.and_then(|object| object.template.clone()) {
                Some(template) => template,
                None => pod_template(),
            },
            service: service.map_or_else(service_template, |object| object.template.clone()),
            version: version.unwrap_or("built-in").into(),
        };
        contract::check(&templates.pod)?;
        contract::check_service(&templates.service)?;
        Ok(templates)
    }

    /// Returns the values by which the pool recognises pods of an old template.
    ///
    /// A changed service template leads to new pods too, with new services.
    #[must_use]
    pub fn for_pool(&self, options: &RenderOptions) -> runner_pool::Template {
        runner_pool::Template {
            version: Arc::clone(&self.version),
            service: fingerprint_of(&self.service),
            message_limit: u64::try_from(options.max_request_body_size).unwrap_or(u64::MAX),
            wrapper_image: options.wrapper_image.as_str().into(),
        }
    }

    /// Reads the templates from the ConfigMap of older installations.
    pub fn of_config_map(map: &ConfigMap) -> Result<Self, TemplateError> {
        let text = |key| map.data.as_ref().and_then(|data| data.get(key));
        let pod = text("template").ok_or(TemplateError::NoKey("template"))?;
        let pod: Pod = parse("template", "Pod", pod)?;
        let service = match text("serviceTemplate") {
            Some(service) => {
                let service: Service = parse("serviceTemplate", "Service", service)?;
                ServiceTemplateSpec {
                    metadata: Some(service.metadata),
                    spec: service.spec,
                }
            }
            None => service_template(),
        };
        let pod = PodTemplateSpec {
            metadata: Some(pod.metadata),
            spec: pod.spec,
        };
        contract::check(&pod)?;
        contract::check_service(&service)?;
        let version = map.metadata.resource_version.as_deref();
        Ok(Self {
            pod,
            service,
            version: version.unwrap_or("unversioned").into(),
        })
    }
}

// === impl TemplateError ===

impl TemplateError {
    /// Returns the error of a headless service template with `--pod-connect=service`.
    #[must_use]
    pub fn headless() -> Self {
        Self::Service(
            "makes services without an address of their own (clusterIP: None or type \
             ExternalName), through which --pod-connect=service cannot reach any pod: remove \
             clusterIP, or use --pod-connect=auto or pod"
                .to_owned(),
        )
    }
}

/// Two are equal if their texts are: errors of the parser cannot be compared.
impl PartialEq for TemplateError {
    fn eq(&self, other: &Self) -> bool {
        with_causes(self) == with_causes(other)
    }
}

impl Eq for TemplateError {}

fn parse<T: DeserializeOwned>(
    key: &'static str,
    kind: &'static str,
    text: &str,
) -> Result<T, TemplateError> {
    serde_saphyr::from_str(text).map_err(|error| TemplateError::Malformed {
        key,
        kind,
        error: Arc::new(error),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{POD_TEMPLATE, SERVICE_TEMPLATE};

    fn config_map(data: &serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"resourceVersion": "41"}, "data": data}))
            .unwrap()
    }

    #[test]
    fn accepts_the_built_in_pod_template() {
        assert_eq!(contract::check(&Templates::built_in().pod), Ok(()));
    }

    #[test]
    fn takes_the_version_of_the_pod_template_even_if_the_service_template_is_newer() {
        let mut pod = default::pod_template_object(POD_TEMPLATE);
        let mut service = default::service_template_object(SERVICE_TEMPLATE);
        pod.metadata.resource_version = Some("9".to_owned());
        service.metadata.resource_version = Some("10".to_owned());
        let templates = Templates::of_objects(Some(&pod), Some(&service)).unwrap();
        assert_eq!(&*templates.version, "9");
        assert_eq!(templates.pod, pod_template());
        service.metadata.resource_version = Some("11".to_owned());
        let same = Templates::of_objects(Some(&pod), Some(&service)).unwrap();
        let options = RenderOptions::default();
        assert_eq!(same.for_pool(&options), templates.for_pool(&options));
        let spec = service.template.spec.get_or_insert_default();
        spec.session_affinity = Some("ClientIP".to_owned());
        let changed = Templates::of_objects(Some(&pod), Some(&service)).unwrap();
        assert_ne!(changed.for_pool(&options), templates.for_pool(&options));
    }

    #[test]
    fn reads_the_config_map_of_older_installations() {
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations: {team: blue}\nspec:\n  \
                   containers:\n  - name: function\n    image: replaced\n    command: [/wrapper-server-tools/wrapper-server]\n    volumeMounts:\n    - {name: wrapper-server-tools, mountPath: /wrapper-server-tools}\n  \
                   volumes:\n  - name: wrapper-server-tools\n    emptyDir: {}\n";
        let service = "apiVersion: v1\nkind: Service\nspec:\n  ipFamilyPolicy: SingleStack\n";
        let templates = Templates::of_config_map(&config_map(
            &json!({"template": pod, "serviceTemplate": service}),
        ))
        .unwrap();
        assert_eq!(&*templates.version, "41");
        let annotations = templates.pod.metadata.unwrap().annotations.unwrap();
        assert_eq!(annotations["team"], "blue");
        let spec = templates.service.spec.unwrap();
        assert_eq!(spec.ip_family_policy.as_deref(), Some("SingleStack"));
    }

    #[test]
    fn recognises_headless_services() {
        let headless = |spec: serde_json::Value| {
            let mut templates = Templates::built_in();
            templates.service.spec = serde_json::from_value(spec).unwrap();
            templates.service_is_headless()
        };
        assert!(headless(json!({"clusterIP": "None"})));
        assert!(headless(json!({"type": "ExternalName"})));
        assert!(!headless(json!({"type": "ClusterIP"})));
        assert!(!Templates::built_in().service_is_headless());
    }

    #[test]
    fn reports_errors_in_a_config_map() {
        let says = |data: serde_json::Value| {
            Templates::of_config_map(&config_map(&data))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            says(json!({})),
            "the template ConfigMap has no key \"template\""
        );
        assert!(says(json!({"template": "spec: 3"})).contains("is no Pod"));
        assert!(says(json!({"template": "spec: {containers: []}"})).contains("\"function\""));
    }
}
