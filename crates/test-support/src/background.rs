//! Servers of a test on a runtime of their own.

use std::{
    net::{Ipv4Addr, SocketAddr},
    thread,
};

use tokio::{net::TcpListener, runtime::Runtime};

use crate::LIMIT;

/// A server on its own runtime, which stops when this value is dropped.
pub struct BackgroundServer {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

// === impl BackgroundServer ===

impl BackgroundServer {
    /// Starts a server on a free port of loopback.
    pub fn start<F>(serve: impl FnOnce(TcpListener) -> F) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), serve)
    }

    /// Starts a server at an address.
    pub fn start_at<F>(address: SocketAddr, serve: impl FnOnce(TcpListener) -> F) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let inside = runtime.enter();
        let listener = TcpListener::from_std(listener).unwrap();
        runtime.spawn(serve(listener));
        drop(inside);
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for BackgroundServer {
    /// Waits until the listener and all connections are closed, so that the address is free again.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // On a thread of its own, because an asynchronous test must not wait for a runtime.
            let stop = thread::spawn(move || runtime.shutdown_timeout(LIMIT));
            let _ = stop.join();
        }
    }
}
