//! Starts the real runner for a measurement and stops it afterwards.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::functions::{self, Functions};

/// Log message of a runner that listens; its event has the address.
const SERVING: &str = "serving";

/// A runner on loopback.
pub(crate) struct Runner {
    child: Child,
    address: SocketAddr,
}

// === impl Runner ===

impl Runner {
    /// Starts a runner that keeps this number of standbys for each function.
    pub(crate) fn start(functions: &Functions, standby: usize) -> Result<Self> {
        Self::start_build(&binary()?, functions, standby)
    }

    /// Starts the runner of another build.
    pub(crate) fn start_build(
        binary: &Path,
        functions: &Functions,
        standby: usize,
    ) -> Result<Self> {
        Self::run_build(binary, SERVING, |command| {
            command
                .args([
                    "--disable-runtimes=pod".to_owned(),
                    format!("--standby={standby}"),
                ])
                .arg(format!("--functions={}", functions.directory().display()))
                .arg(format!("--config={}", functions.config().display()))
        })
    }

    /// Starts a runner with additional arguments and waits for the log message `ready`.
    pub(crate) fn run(
        ready: &str,
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self> {
        Self::run_build(&binary()?, ready, with)
    }

    fn run_build(
        binary: &Path,
        ready: &str,
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Self> {
        let mut command = functions::command(binary);
        command.args([
            "--port=0",
            "--listen-address=127.0.0.1",
            "--log-format=json",
        ]);
        let mut child = with(&mut command)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let log = child.stderr.take().context("the runner has no log")?;
        // Created before anything can fail, because dropping this value ends the process.
        let mut runner = Self {
            child,
            address: SocketAddr::from(([0; 4], 0)),
        };
        let mut lines = BufReader::new(log).lines();
        runner.address = address(&mut lines, ready)?;
        // Reads the log to the end, because the runner would block on a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Ok(runner)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Runner {
    /// Stops the runner and its functions at once, by a second signal.
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::INT] {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
        let _ = self.child.wait();
    }
}

/// Returns the path of the runner that was built beside this program.
pub(crate) fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("function-runner");
    if !path.is_file() {
        bail!("{} is not built: run make bench", path.display());
    }
    Ok(path)
}

/// Reads the log until the message `ready` and returns the address from it.
fn address(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    ready: &str,
) -> Result<SocketAddr> {
    let (mut address, mut said) = (None, String::new());
    for line in lines {
        let line = line?;
        let event: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if event["message"] == SERVING {
            let told = event["address"].as_str().context("no address")?;
            address = Some(told.parse()?);
        }
        if let (Some(address), true) = (address, event["message"] == ready) {
            return Ok(address);
        }
        said = line;
    }
    bail!("the runner ended: {said}")
}
