//! Names that existing installations, templates and dashboards rely on.

use std::{fs, path::Path};

/// The label that ties a pod to its service; its value is the slot's name.
pub const IMAGE_LABEL: &str = "fn.kpt.dev/image";
/// The annotation with the stamp of what a pod was made from, see
/// [`TemplateVersion::stamp`](runner_pool::TemplateVersion::stamp).
pub const TEMPLATE_VERSION: &str = "fn.kpt.dev/template-version";
/// The annotation with the Unix second from which an unused pod may be removed.
pub const RECLAIM_AFTER: &str = "fn.kpt.dev/reclaim-after";
/// The annotation with the digest of the function's image where the pod names it by tag alone.
pub(crate) const IMAGE_DIGEST: &str = "fn.kpt.dev/image-digest";
/// The `PodTemplate` that function pods are made from.
pub const POD_TEMPLATE: &str = "base-pod-template";
/// The `ServiceTemplate` that their services are made from.
pub const SERVICE_TEMPLATE: &str = "base-service-template";
/// Where the wrapper listens.
pub const PORT: u16 = 9446;

pub(crate) const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// Whose log and shell kubectl shows where a pod has several containers.
pub(crate) const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// The label by which the pods of this runner are told from those of the Go runner. A template may
/// set another value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const FIELD_MANAGER: &str = "krm-function-runner";
pub(crate) const FUNCTION_CONTAINER: &str = "function";
pub(crate) const COPY_CONTAINER: &str = "copy-wrapper-server";
pub(crate) const TOOLS: &str = "wrapper-server-tools";
pub(crate) const TOOLS_DIR: &str = "/wrapper-server-tools";
/// Where the wrapper lies in its own image.
pub(crate) const WRAPPER_HOME: &str = "/home/nonroot/wrapper-server";

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const DEFAULT_NAMESPACE: &str = "porch-system";

/// The runner's own namespace: that of its service account, or the one Porch is usually in.
#[must_use]
pub fn own_namespace() -> String {
    namespace_in(Path::new(NAMESPACE_FILE))
}

fn namespace_in(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    match text.trim() {
        "" => DEFAULT_NAMESPACE.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_service_account_it_is_porchs_namespace() {
        assert_eq!(namespace_in(Path::new("/nonexistent")), "porch-system");
    }
}
