//! Receives announcements of wrappers, which arrive long before Kubernetes reports pods as ready.

use std::net::SocketAddr;

use aws_lc_rs::rand;
use runner_pool::PodName;
use runner_proto::announce::{
    AnnounceRequest, AnnounceResponse,
    announcements_server::{Announcements, AnnouncementsServer},
};
use tokio::{net::TcpListener, sync::oneshot};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::inbox::{Inbox, Message};

const SECRET_BYTES: usize = 16;
/// Size limit of an announcement in bytes (4 KiB); it has three short fields.
const MESSAGE_LIMIT: usize = 4 << 10;

/// The listener for announcements of wrappers.
pub struct Announcing {
    /// The bound listener.
    pub listener: TcpListener,
    /// Address (host:port) that wrappers announce themselves to.
    pub address: String,
}

/// The gRPC service that wrappers announce themselves to.
struct AnnouncementService {
    inbox: Inbox,
}

/// Serves announcements, and nothing else, until the driver has ended.
pub(crate) async fn serve(listener: TcpListener, inbox: Inbox) {
    let driver = inbox.clone();
    let service = AnnouncementsServer::new(AnnouncementService { inbox })
        .max_decoding_message_size(MESSAGE_LIMIT);
    let served = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async move {
            driver.closed().await;
        });
    if let Err(error) = served.await {
        tracing::warn!(%error, "announcements are no longer received");
    }
}

/// Returns the secret of a new token, or none if the system provides no randomness.
pub(crate) fn new_secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    rand::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

#[tonic::async_trait]
impl Announcements for AnnouncementService {
    async fn announce(
        &self,
        request: Request<AnnounceRequest>,
    ) -> Result<Response<AnnounceResponse>, Status> {
        let AnnounceRequest {
            pod,
            token,
            address,
        } = request.into_inner();
        let address: SocketAddr = address
            .parse()
            .map_err(|_| Status::invalid_argument("the address is not an IP address and a port"))?;
        let (reply, answer) = oneshot::channel();
        let announced = Message::Announced {
            pod: PodName::from(pod),
            token,
            address: address.ip(),
            reply,
        };
        self.inbox.send(announced).await;
        match answer.await {
            Ok(true) => Ok(Response::new(AnnounceResponse {})),
            Ok(false) => Err(Status::permission_denied(
                "this announcement is not waited for",
            )),
            Err(_) => Err(Status::unavailable("the function runner is shutting down")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_secrets_are_alike() {
        assert_ne!(new_secret().unwrap(), new_secret().unwrap());
    }
}
