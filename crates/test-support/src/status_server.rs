//! A gRPC server that reports a fixed status.

use std::net::SocketAddr;

use runner_proto::runner_status::{
    GetStatusRequest, GetStatusResponse,
    runner_status_server::{RunnerStatus, RunnerStatusServer},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::BackgroundServer;

/// The status of a runner that serves nothing else.
struct FixedStatus(GetStatusResponse);

/// Starts a server of this status at an address; port 0 is a free port.
#[must_use]
pub fn status_server(address: SocketAddr, status: GetStatusResponse) -> BackgroundServer {
    let service = RunnerStatusServer::new(FixedStatus(status));
    let server = Server::builder().add_service(service);
    BackgroundServer::start_at(address, |listener| {
        server.serve_with_incoming(TcpListenerStream::new(listener))
    })
}

// === impl FixedStatus ===

#[tonic::async_trait]
impl RunnerStatus for FixedStatus {
    async fn get_status(
        &self,
        _: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(self.0.clone()))
    }
}
