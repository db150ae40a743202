//! Starts the real wrapper for a measurement and stops it afterwards.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use runner_devtools::{failure, static_triple, target_directory};

use crate::functions;

/// Time limit for the wrapper's start, which takes milliseconds.
const LIMIT: Duration = Duration::from_secs(5);

/// A wrapper around one program, outside a pod.
pub(crate) struct Wrapper {
    child: Child,
    address: SocketAddr,
    listened: Duration,
}

// === impl Wrapper ===

impl Wrapper {
    /// Starts the wrapper as a pod does, on a free port, and waits until it accepts connections.
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let address = free_address()?;
        let binary = Self::program()?;
        let started = Instant::now();
        let child = functions::command(&binary)
            .args(["--port", &address.port().to_string(), "--"])
            .arg(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        // Created before anything can fail, because dropping this value ends the process.
        let mut wrapper = Self {
            child,
            address,
            listened: Duration::ZERO,
        };
        // Tries without pauses, because the result is milliseconds.
        loop {
            match TcpStream::connect(address) {
                Ok(_) => break,
                Err(error) if error.kind() != ErrorKind::ConnectionRefused => bail!(error),
                Err(_) if started.elapsed() > LIMIT => bail!("the wrapper does not listen"),
                Err(_) => {}
            }
        }
        wrapper.listened = started.elapsed();
        Ok(wrapper)
    }

    /// Returns the path of the wrapper as it is shipped: static and built for size.
    pub(crate) fn program() -> Result<PathBuf> {
        let path = target_directory()
            .join("image")
            .join(static_triple())
            .join("tiny/wrapper-server");
        if !path.is_file() {
            return Err(failure(
                format!("{} is not built", path.display()),
                "run: cargo xtask wrapper",
            ));
        }
        Ok(path)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the time from the start to the first accepted connection.
    pub(crate) fn listened_after(&self) -> Duration {
        self.listened
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
