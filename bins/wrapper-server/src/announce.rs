//! Announces to the runner that this pod listens, long before the kubelet reports it ready.
//!
//! The announcement is optional: if it does not reach the runner, the runner detects the pod by its
//! watch.

use std::{env, net::SocketAddr, time::Duration};

use runner_core::environment;
use runner_proto::announce::{AnnounceRequest, announcements_client::AnnouncementsClient};
use tonic::{Code, Status, transport::Endpoint};
use tracing::debug;

const MAX_ATTEMPTS: u32 = 6;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(1);

/// An announcement and the address of the runner that receives it.
pub(crate) struct Announcement {
    runner: String,
    request: AnnounceRequest,
}

// === impl Announcement ===

impl Announcement {
    /// Reads the announcement from the environment; returns `None` if a variable is missing.
    pub(crate) fn from_environment(listening: SocketAddr) -> Option<Self> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let host = variable(environment::WRAPPER_POD_ADDRESS)?;
        // An IPv6 address needs brackets in front of a port.
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        Some(Self {
            runner: variable(environment::WRAPPER_RUNNER)?,
            request: AnnounceRequest {
                pod: variable(environment::WRAPPER_SLOT)?,
                token: variable(environment::WRAPPER_TOKEN)?,
                address: format!("{host}:{}", listening.port()),
            },
        })
    }

    /// Sends the announcement, up to six times if the runner is not reachable.
    pub(crate) async fn send(self) {
        let mut delay = FIRST_DELAY;
        for attempt in 1..=MAX_ATTEMPTS {
            match self.call().await {
                Ok(()) => return debug!(runner = self.runner, attempt, "announced"),
                Err(error) if is_permanent(error.code()) => {
                    return debug!(runner = self.runner, %error, "announcement refused");
                }
                Err(error) => debug!(runner = self.runner, attempt, %error, "announcement failed"),
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
    }

    async fn call(&self) -> Result<(), Status> {
        let unreachable = |error: tonic::transport::Error| Status::unavailable(error.to_string());
        let channel = Endpoint::from_shared(format!("http://{}", self.runner))
            .map_err(|error| Status::invalid_argument(error.to_string()))?
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .connect()
            .await
            .map_err(unreachable)?;
        AnnouncementsClient::new(channel)
            .announce(self.request.clone())
            .await
            .map(|_| ())
    }
}

fn is_permanent(code: Code) -> bool {
    matches!(
        code,
        Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented
    )
}
