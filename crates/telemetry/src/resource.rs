//! What the exported telemetry says about the process it comes from.

use opentelemetry_sdk::Resource;

use crate::settings::Settings;

/// Attributes of this process: `OTEL_RESOURCE_ATTRIBUTES`, and the service's name from
/// `OTEL_SERVICE_NAME`, else from those attributes, else `service_name`.
pub(crate) fn of(service_name: &str, settings: &Settings) -> Resource {
    let mut resource = Resource::builder();
    if !settings.names_service {
        resource = resource.with_service_name(service_name.to_owned());
    }
    resource.build()
}
