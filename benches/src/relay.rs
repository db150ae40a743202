//! A TCP relay to the API server that counts the messages of clients.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::Result;

/// A relay that forwards connections unchanged and counts the messages of clients.
///
/// An HTTP/1.1 request over TLS is at least one message; an open watch sends none.
pub(crate) struct Relay {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
}

// === impl Relay ===

impl Relay {
    /// Starts a relay to an address, which runs until the program ends.
    pub(crate) fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Self {
            address: listener.local_addr()?,
            sent: Arc::default(),
        };
        let sent = relay.sent.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = connect(client, server, &sent);
            }
        });
        Ok(relay)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of messages that clients have sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

fn connect(client: TcpStream, server: SocketAddr, sent: &Arc<AtomicU64>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (mut requests, mut answers) = (client.try_clone()?, server.try_clone()?);
    let (mut to_client, mut to_server) = (client, server);
    let sent = sent.clone();
    thread::spawn(move || {
        pass(&mut requests, &mut to_server, || {
            sent.fetch_add(1, Ordering::SeqCst);
        })
    });
    thread::spawn(move || pass(&mut answers, &mut to_client, || {}));
    Ok(())
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, mut count: impl FnMut()) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(read) if read > 0 => {
                count();
                to.write_all(&buffer[..read])?;
            }
            _ => return to.shutdown(Shutdown::Both),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_messages_of_clients_but_not_of_the_server() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::to(server.local_addr().unwrap()).unwrap();
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut heard = [0; 5];
        served.write_all(b"event").unwrap();
        client.read_exact(&mut heard).unwrap();
        assert_eq!((&heard, relay.sent()), (b"event", 0));
        client.write_all(b"asked").unwrap();
        served.read_exact(&mut heard).unwrap();
        assert_eq!((&heard, relay.sent()), (b"asked", 1));
    }
}
