//! The custom resource `ServiceTemplate`.

use std::borrow::Cow;

use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ServiceSpec,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, core::TypeMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GROUP, VERSION};

/// A template of the services in front of function pods.
///
/// It has `template` where other objects have `spec`, as a `PodTemplate` does, so it cannot be
/// derived from a spec.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ServiceTemplate {
    /// Group, version and kind of the object.
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    /// Metadata of the object itself.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The template of a service.
    pub template: ServiceTemplateSpec,
}

/// The metadata and the spec that a service is made from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ServiceTemplateSpec {
    /// Labels and annotations of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::any_object")]
    pub metadata: Option<ObjectMeta>,
    /// Spec of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ServiceSpec>,
}

// === impl ServiceTemplate ===

impl ServiceTemplate {
    /// Returns a template object of the given name.
    #[must_use]
    pub fn new(name: &str, template: ServiceTemplateSpec) -> Self {
        let types = TypeMeta {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: Self::kind(&()).into_owned(),
        };
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self {
            types: Some(types),
            metadata,
            template,
        }
    }
}

impl Resource for ServiceTemplate {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ServiceTemplate".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "servicetemplates".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
