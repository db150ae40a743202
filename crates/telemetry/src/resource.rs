//! Builds the OpenTelemetry resource that identifies this process in exported telemetry.

use opentelemetry_sdk::Resource;

use crate::settings::Settings;

/// Returns the resource attributes of this process.
///
/// They come from `OTEL_RESOURCE_ATTRIBUTES`. The service name is `OTEL_SERVICE_NAME`, else the
/// `service.name` of these attributes, else `service_name`.
pub(crate) fn of(service_name: &str, settings: &Settings) -> Resource {
    let mut resource = Resource::builder();
    if !settings.names_service {
        resource = resource.with_service_name(service_name.to_owned());
    }
    resource.build()
}
