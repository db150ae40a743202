//! The runner's flags that need the pod runtime.

/// Flags of the pod runtime and of registries, without dashes.
///
/// A runner without `WRAPPER_SERVER_IMAGE` turns the pod runtime off if none of them is on its
/// command line, and does not start if one is.
pub(super) const POD_FLAGS: [&str; 33] = [
    "pod-cache-config",
    "warm-up-pod-cache",
    "pod-namespace",
    "pod-ttl",
    "scan-interval",
    "function-pod-template",
    "base-pod-template-name",
    "base-service-template-name",
    "skip-template-creation",
    "template-wait-timeout",
    "max-waitlist-length",
    "max-parallel-pods-per-function",
    "max-queue-per-function",
    "pod-ready-timeout",
    "unschedulable-timeout",
    "max-evaluations-per-pod",
    "max-grpc-retries",
    "retry-lost-pods",
    "pod-connect",
    "cluster-domain",
    "wrapper-injection",
    "announce-port",
    "announce-address",
    "enable-private-registries",
    "registry-auth-secret-path",
    "registry-auth-secret-name",
    "enable-private-registries-tls",
    "tls-secret-path",
    "image-pinning",
    "image-tag-ttl",
    "image-platform",
    "insecure-registry",
    "registry-mirror",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The runner's own tests check that the table in the documentation has every flag.
    #[test]
    fn lists_every_flag_that_is_documented_for_pods_and_registries() {
        let page = include_str!("../../../../docs/configuration.md");
        let (_, of_pods) = page.split_once("| **pod runtime** |").unwrap();
        let (of_pods, _) = of_pods.split_once("\n\n").unwrap();
        let documented: Vec<&str> = of_pods
            .lines()
            .filter_map(|row| row.split('|').nth(1))
            .flat_map(|names| names.split(','))
            .filter_map(|name| name.trim().strip_prefix("`--")?.strip_suffix('`'))
            .collect();
        assert_eq!(documented, POD_FLAGS);
    }
}
