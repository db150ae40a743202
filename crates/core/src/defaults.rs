//! Defaults and limits that several programs must agree on.

/// Port of the runner's gRPC service (`--port` of `function-runner`).
pub const RUNNER_PORT: u16 = 9445;

/// Address of a runner on this machine (`--address` of `krm`).
pub const RUNNER_ADDRESS: &str = "localhost:9445";

/// Port of the wrapper in a function pod (`--port` of `wrapper-server`).
pub const WRAPPER_PORT: u16 = 9446;

/// Port of the runner to which wrappers announce themselves (`--announce-port`).
pub const ANNOUNCE_PORT: u16 = 9447;

/// Size limit of a gRPC message in bytes, 6 MiB (`--max-request-body-size`).
pub const MAX_MESSAGE_SIZE: usize = 6 << 20;

/// Size limit of a function's log in bytes, 4 MiB; the middle of longer logs is cut out.
pub const MAX_LOG_SIZE: usize = 4 << 20;

/// Size limit of a status report in bytes, 64 MiB; enough for ten thousand pods.
pub const MAX_REPORT_SIZE: usize = 64 << 20;

/// HTTP/2 flow-control window of a stream in bytes, 8 MiB.
///
/// A resource list of [`MAX_MESSAGE_SIZE`] fits into it and is sent without round trips.
pub const STREAM_WINDOW: u32 = 8 << 20;

/// HTTP/2 flow-control window of a connection in bytes, 64 MiB.
pub const CONNECTION_WINDOW: u32 = 64 << 20;

/// Prefix of function images without a slash (`--default-image-prefix`): the public catalog.
pub const IMAGE_PREFIX: &str = "ghcr.io/kptdev/krm-functions-catalog";

/// Namespace of function pods (`--pod-namespace`).
pub const POD_NAMESPACE: &str = "porch-fn-system";

/// Namespace of the runner itself.
pub const RUNNER_NAMESPACE: &str = "porch-system";

/// Name of the runner's Deployment, of its Service and of its container.
pub const RUNNER_NAME: &str = "function-runner";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_one_port_for_the_runner() {
        assert_eq!(RUNNER_ADDRESS, format!("localhost:{RUNNER_PORT}"));
    }

    #[test]
    fn sends_a_message_of_the_default_limit_in_one_window() {
        const { assert!(MAX_MESSAGE_SIZE < STREAM_WINDOW as usize) }
        const { assert!(STREAM_WINDOW < CONNECTION_WINDOW) }
    }
}
