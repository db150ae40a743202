//! Receives announcements of wrappers, which arrive long before Kubernetes reports pods as ready.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::{constant_time::verify_slices_are_equal, rand};
use runner_pool::Uid;
use runner_proto::announce::{
    AnnounceRequest, AnnounceResponse,
    announcements_server::{Announcements, AnnouncementsServer},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::message::Message;

const TOKEN_BYTES: usize = 16;
/// Size limit of an announcement in bytes (4 KiB); it has three short fields.
const MESSAGE_LIMIT: usize = 4 << 10;

/// The listener for announcements of wrappers.
pub struct Announcing {
    /// The bound listener.
    pub listener: TcpListener,
    /// Address (host:port) that wrappers announce themselves to.
    pub address: String,
}

/// The one-time token of one attempt to start a pod.
pub(crate) struct Token {
    secret: String,
    /// Uid of the pod that has the token, once the API server has returned it.
    pub(crate) pod: Option<Uid>,
    /// Address from an announcement that arrived before the API server's answer.
    pub(crate) early: Option<IpAddr>,
    used: bool,
}

/// The result of checking an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The token is valid and the pod was awaited.
    Accepted,
    /// The token is valid, but the pod was found before: the watch may win the race.
    Late,
    /// The token is unknown or was used before.
    Refused,
}

struct Door {
    messages: mpsc::UnboundedSender<Message>,
}

/// Serves announcements, and nothing else, until the driver has ended.
pub(crate) async fn serve(listener: TcpListener, messages: mpsc::UnboundedSender<Message>) {
    let gone = messages.clone();
    let door = AnnouncementsServer::new(Door { messages }).max_decoding_message_size(MESSAGE_LIMIT);
    let served = tonic::transport::Server::builder()
        .add_service(door)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async move {
            gone.closed().await;
        });
    if let Err(error) = served.await {
        tracing::warn!(%error, "announcements are not heard any more");
    }
}

// === impl Token ===

impl Token {
    /// Returns a random token, or none if the system provides no randomness.
    pub(crate) fn new() -> Option<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(Self {
            secret: hex::encode(bytes),
            pod: None,
            early: None,
            used: false,
        })
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns whether this is the token, presented for the first time.
    pub(crate) fn redeem(&mut self, token: &str) -> bool {
        let right = verify_slices_are_equal(self.secret.as_bytes(), token.as_bytes()).is_ok();
        right && !std::mem::replace(&mut self.used, true)
    }
}

#[tonic::async_trait]
impl Announcements for Door {
    async fn announce(
        &self,
        request: Request<AnnounceRequest>,
    ) -> Result<Response<AnnounceResponse>, Status> {
        let AnnounceRequest {
            slot,
            token,
            address,
        } = request.into_inner();
        let address: SocketAddr = address
            .parse()
            .map_err(|_| Status::invalid_argument("the address is not an IP address and a port"))?;
        let (reply, answer) = oneshot::channel();
        let announced = Message::Announced {
            slot,
            token,
            address: address.ip(),
            reply,
        };
        let heard = self.messages.send(announced).is_ok();
        match answer.await {
            Ok(true) if heard => Ok(Response::new(AnnounceResponse {})),
            Ok(_) => Err(Status::permission_denied(
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
    fn accepts_the_exact_token_once() {
        let mut token = Token::new().unwrap();
        let secret = token.secret().to_owned();
        assert!(!token.redeem(""));
        assert!(!token.redeem(&secret[1..]));
        assert!(token.redeem(&secret));
        assert!(!token.redeem(&secret));
    }

    #[test]
    fn no_two_tokens_are_alike() {
        let new = || Token::new().unwrap().secret().to_owned();
        assert_ne!(new(), new());
    }
}
