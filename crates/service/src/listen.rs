//! The address and port that a server listens on.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// A port and the address that it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAt {
    /// IP address; none: all addresses of the machine.
    pub address: Option<IpAddr>,
    /// Port; 0 selects a free one.
    pub port: u16,
}

// === impl ListenAt ===

impl ListenAt {
    /// Returns a port on all addresses.
    #[must_use]
    pub fn everywhere(port: u16) -> Self {
        Self {
            address: None,
            port,
        }
    }

    /// Binds the port.
    pub async fn bind(self) -> io::Result<TcpListener> {
        let bind = async |address| TcpListener::bind(SocketAddr::new(address, self.port)).await;
        if let Some(address) = self.address {
            return bind(address).await;
        }
        match bind(Ipv6Addr::UNSPECIFIED.into()).await {
            // The machine may have no IPv6.
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                bind(Ipv4Addr::UNSPECIFIED.into()).await
            }
            bound => bound,
        }
    }
}

impl std::fmt::Display for ListenAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).fmt(f),
            None => write!(f, "port {}", self.port),
        }
    }
}
