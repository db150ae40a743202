//! A proxy in front of the open registry that delays and throttles what it sends back.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{Testbed, registries};

/// The speed of a slow registry.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Delay before the first byte of every connection.
    pub latency: Duration,
    /// Rate after the delay; with zero nothing is ever sent.
    pub bytes_per_second: u32,
}

/// A slow proxy to the open registry, which stops when this value is dropped.
#[must_use = "the proxy stops when it is dropped"]
pub struct SlowRegistry<'a> {
    bed: &'a Testbed,
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

// === impl SlowRegistry ===

impl<'a> SlowRegistry<'a> {
    pub(super) fn start(bed: &'a Testbed, pace: Pace) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        let address = listener.local_addr()?;
        let registry = SocketAddr::from((Ipv4Addr::LOCALHOST, bed.settings.registry_port));
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let acceptor = thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let stop = Arc::clone(&stop);
                // An error ends only this connection, and the client sees it.
                thread::spawn(move || serve(&client, registry, pace, &stop));
            }
        });
        let slow = Self {
            bed,
            address,
            stopped,
            acceptor: Some(acceptor),
        };
        let endpoint = format!("http://{address}");
        registries::write_hosts_file(&bed.layout, &slow.host(), &endpoint, None)?;
        Ok(slow)
    }

    /// Returns the proxy's host, as image references contain it; all images of the open registry
    /// are there.
    #[must_use]
    pub fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    fn hosts_directory(&self) -> PathBuf {
        self.bed.layout.in_run("registries").join(self.host())
    }
}

impl Drop for SlowRegistry<'_> {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the acceptor, which then checks the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let _ = fs::remove_dir_all(self.hosts_directory());
    }
}

/// Forwards one connection to the registry until either side closes it.
fn serve(
    client: &TcpStream,
    registry: SocketAddr,
    pace: Pace,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let server = TcpStream::connect(registry)?;
    let (mut requests, mut upstream) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut requests, &mut upstream);
        upstream.shutdown(Shutdown::Write)
    });
    let sent = forward_slowly(server, client, pace, stopped);
    client.shutdown(Shutdown::Both)?;
    sent
}

/// Forwards bytes at the given pace, in portions of 0.1 s.
fn forward_slowly(
    mut from: TcpStream,
    mut to: &TcpStream,
    pace: Pace,
    stopped: &AtomicBool,
) -> io::Result<()> {
    const INTERVAL: Duration = Duration::from_millis(100);
    let portion = usize::try_from(pace.bytes_per_second / 10).unwrap_or(usize::MAX);
    let mut buffer = vec![0; portion.clamp(1, 1 << 20)];
    from.set_read_timeout(Some(INTERVAL))?;
    thread::sleep(pace.latency);
    while !stopped.load(Ordering::Relaxed) {
        if portion == 0 {
            thread::sleep(INTERVAL);
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                to.write_all(&buffer[..length])?;
                thread::sleep(INTERVAL);
            }
            // The registry sends nothing: check the flag and read again.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
