//! A server as a process: its address, its log and its exit status.

use std::{
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tokio::{sync::watch, time::timeout};

use crate::{Client, LIMIT, ProcessResources, children, eventually, process::end_within};

/// Time from the signals at the end of a test to SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A running server, which is stopped with its functions when this value is dropped.
pub struct ServerProcess {
    /// Address from the log message about listening.
    pub address: SocketAddr,
    child: Child,
    pid: Pid,
    log: watch::Receiver<Vec<String>>,
}

// === impl ServerProcess ===

impl ServerProcess {
    /// Starts the command and waits until it logs the address at which it serves.
    pub async fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {:?}: {error}", command.get_program());
        });
        let log = follow(child.stderr.take().unwrap());
        // Created before anything can fail, because dropping this value ends the process.
        let mut server = Self {
            address: SocketAddr::from(([0; 4], 0)),
            pid: Pid::from_child(&child),
            child,
            log,
        };
        server.address = server.find("a serving address", serving_address).await;
        server
    }

    /// Starts a command whose only child is the server.
    pub async fn start_in_namespace(command: Command) -> Self {
        let mut server = Self::start(command).await;
        server.pid = children(server.child.id())[0];
        server
    }

    /// Waits for a log line that contains a text.
    pub async fn logged(&self, text: &str) -> String {
        let has_text = |line: &str| line.contains(text).then(|| line.to_owned());
        self.find(text, has_text).await
    }

    /// Waits for a log line for which `extract` returns a value.
    ///
    /// # Panics
    ///
    /// Panics with the log if there is no such line within [`LIMIT`] or until the process ends.
    pub async fn find<T>(&self, what: &str, extract: impl Fn(&str) -> Option<T>) -> T {
        let mut log = self.log.clone();
        let search = |lines: &Vec<String>| lines.iter().find_map(|line| extract(line));
        let found = log.wait_for(|lines| search(lines).is_some());
        match timeout(LIMIT, found).await {
            Ok(Ok(lines)) => search(&lines).unwrap(),
            Ok(Err(_)) => panic!("the process ended without {what:?}:\n{}", self.log()),
            Err(_) => panic!("{what:?} is not in the log:\n{}", self.log()),
        }
    }

    /// Returns the log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.borrow().join("\n")
    }

    /// Connects to the server.
    pub async fn client(&self) -> Client {
        Client::to(self.address).await
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Returns the server's children; zombies count.
    #[must_use]
    pub fn children(&self) -> Vec<Pid> {
        children(self.pid())
    }

    /// Returns the resources that the server holds now.
    #[must_use]
    pub fn resources(&self) -> ProcessResources {
        ProcessResources::of(self.pid())
    }

    /// Waits until the process exits.
    pub async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the process ends", || child.try_wait().unwrap()).await
    }

    /// Kills the process with SIGKILL, if it still runs.
    pub fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for ServerProcess {
    /// Stops the server and its functions with two signals; kills what has not stopped after 10 s.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let functions = children(self.pid());
        for signal in [Signal::TERM, Signal::INT] {
            let _ = kill_process(self.pid, signal);
        }
        if end_within(&mut self.child, STOP_LIMIT).is_none() {
            self.kill();
            for function in functions {
                let _ = kill_process_group(function, Signal::KILL);
            }
        }
    }
}

/// Collects log lines until the process exits.
fn follow(stderr: impl Read + Send + 'static) -> watch::Receiver<Vec<String>> {
    let (lines, log) = watch::channel(Vec::new());
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            lines.send_modify(|lines| lines.push(line));
        }
    });
    log
}

/// Returns the address in the log message about listening, in JSON or text.
///
/// An unspecified address (`0.0.0.0`, `::`) becomes loopback.
fn serving_address(line: &str) -> Option<SocketAddr> {
    let address: SocketAddr = match serde_json::from_str::<Value>(line) {
        Ok(event) if event["message"] == "serving" => event["address"].as_str()?.parse().ok()?,
        Ok(_) => return None,
        Err(_) => {
            let (_, rest) = line.split_once("serving address=")?;
            rest.split(' ').next()?.parse().ok()?
        }
    };
    if address.ip().is_unspecified() {
        return Some(SocketAddr::from(([127, 0, 0, 1], address.port())));
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_in_log_lines_of_both_formats() {
        for (line, address) in [
            (
                r#"{"level":"info","message":"serving","address":"127.0.0.1:9445"}"#,
                Some("127.0.0.1:9445"),
            ),
            (
                "INFO serving address=0.0.0.0:9446 x=1",
                Some("127.0.0.1:9446"),
            ),
            ("INFO serving address=[::]:9446", Some("127.0.0.1:9446")),
            ("INFO loaded address=127.0.0.1:1", None),
            (r#"{"message":"connected","address":"127.0.0.1:1"}"#, None),
        ] {
            let expected = address.map(|address| address.parse().unwrap());
            assert_eq!(serving_address(line), expected, "{line}");
        }
    }
}
