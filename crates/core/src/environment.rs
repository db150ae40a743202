//! Names of environment variables that several programs must agree on.

/// Variable of the runner: image that contains the wrapper; without it there is no pod runtime.
pub const WRAPPER_SERVER_IMAGE: &str = "WRAPPER_SERVER_IMAGE";

/// Variable that Kubernetes sets in every pod: address of the API server.
pub const KUBERNETES_SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";

/// Prefix of the wrapper's own variables, which functions do not get.
pub const WRAPPER_PREFIX: &str = "KRM_WRAPPER_";

/// Variable of the wrapper: address (host:port) of the runner to which it announces itself.
pub const WRAPPER_RUNNER: &str = "KRM_WRAPPER_RUNNER";

/// Variable of the wrapper: name of the slot that its pod belongs to.
pub const WRAPPER_SLOT: &str = "KRM_WRAPPER_SLOT";

/// Variable of the wrapper: one-time token of its announcement.
pub const WRAPPER_TOKEN: &str = "KRM_WRAPPER_TOKEN";

/// Variable of the wrapper: IP address of its pod.
pub const WRAPPER_POD_ADDRESS: &str = "KRM_WRAPPER_POD_ADDRESS";

/// Variable of the wrapper: `0` turns standby off.
pub const WRAPPER_STANDBY: &str = "KRM_WRAPPER_STANDBY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_every_variable_of_the_wrapper_from_functions() {
        for name in [
            WRAPPER_RUNNER,
            WRAPPER_SLOT,
            WRAPPER_TOKEN,
            WRAPPER_POD_ADDRESS,
            WRAPPER_STANDBY,
        ] {
            assert!(name.starts_with(WRAPPER_PREFIX), "{name}");
        }
    }
}
