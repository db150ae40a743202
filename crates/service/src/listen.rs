//! Where to listen.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// A port, and the address it is taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAt {
    /// None stands for every address of the machine.
    pub address: Option<IpAddr>,
    /// 0 takes a free one.
    pub port: u16,
}

// === impl ListenAt ===

impl ListenAt {
    /// A port on every address.
    #[must_use]
    pub fn everywhere(port: u16) -> Self {
        Self {
            address: None,
            port,
        }
    }

    /// Takes the port.
    pub async fn bind(self) -> io::Result<TcpListener> {
        let bind = async |address| TcpListener::bind(SocketAddr::new(address, self.port)).await;
        if let Some(address) = self.address {
            return bind(address).await;
        }
        match bind(Ipv6Addr::UNSPECIFIED.into()).await {
            // Machines without IPv6.
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
