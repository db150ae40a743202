//! Names that existing installations, templates and dashboards rely on.

use std::{fs, path::Path};

use runner_core::defaults::RUNNER_NAMESPACE;
pub use runner_core::defaults::WRAPPER_PORT as PORT;

/// Label that ties a pod to its service; its value is the slot's name.
pub const IMAGE_LABEL: &str = "fn.kpt.dev/image";
/// Annotation with the stamp of the template that a pod was made from.
///
/// See [`TemplateVersion::stamp`](runner_pool::TemplateVersion::stamp).
pub const TEMPLATE_VERSION: &str = "fn.kpt.dev/template-version";
/// Annotation with the Unix time in seconds from which an unused pod may be removed.
pub const RECLAIM_AFTER: &str = "fn.kpt.dev/reclaim-after";
/// Annotation with the digest of the function's image, for pods that name the image by tag alone.
pub(crate) const IMAGE_DIGEST: &str = "fn.kpt.dev/image-digest";
/// Default name of the `PodTemplate` that function pods are made from.
pub const POD_TEMPLATE: &str = "base-pod-template";
/// Default name of the `ServiceTemplate` that the services of function pods are made from.
pub const SERVICE_TEMPLATE: &str = "base-service-template";

pub(crate) const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// Annotation with the container that `kubectl logs` and `kubectl exec` use by default.
pub(crate) const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// Label that distinguishes pods of this runner from pods of the Go runner.
///
/// A template may set another value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const FIELD_MANAGER: &str = "krm-function-runner";
pub(crate) const FUNCTION_CONTAINER: &str = "function";
pub(crate) const COPY_CONTAINER: &str = "copy-wrapper-server";
pub(crate) const TOOLS: &str = "wrapper-server-tools";
pub(crate) const TOOLS_DIR: &str = "/wrapper-server-tools";
/// Directory of the wrapper in its own image.
pub(crate) const WRAPPER_HOME: &str = "/home/nonroot/wrapper-server";

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Returns the namespace of the runner's service account, or `porch-system` without one.
#[must_use]
pub fn own_namespace() -> String {
    namespace_in(Path::new(NAMESPACE_FILE))
}

fn namespace_in(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    match text.trim() {
        "" => RUNNER_NAMESPACE.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_porch_system_without_a_service_account() {
        assert_eq!(namespace_in(Path::new("/nonexistent")), "porch-system");
    }
}
