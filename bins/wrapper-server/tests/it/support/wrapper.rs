//! A running wrapper: its address, its log and its exit status.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{sync::watch, time::timeout};

use super::{Client, LIMIT, eventually, held};

/// A wrapper that is stopped with its functions at the end of the test.
pub struct Wrapper {
    pub address: SocketAddr,
    child: Child,
    pid: Pid,
    log: watch::Receiver<Vec<String>>,
}

/// The result of a wrapper that exited by itself.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stderr: String,
}

// === impl Wrapper ===

impl Wrapper {
    /// Starts the command and waits until it serves; a namespaced wrapper is the command's child.
    pub(super) async fn start(mut command: Command, namespaced: bool) -> Self {
        let mut child = command.spawn().unwrap();
        let log = follow(child.stderr.take().unwrap());
        let mut wrapper = Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            pid: Pid::from_child(&child),
            child,
            log,
        };
        let serving = wrapper.logged("serving address=").await;
        let address = serving.split("address=").nth(1).unwrap();
        let address: SocketAddr = address.split(' ').next().unwrap().parse().unwrap();
        wrapper.address.set_port(address.port());
        if namespaced {
            wrapper.pid = held::children(wrapper.child.id())[0];
        }
        wrapper
    }

    /// Waits for a log line that contains a text.
    pub async fn logged(&self, text: &str) -> String {
        let mut log = self.log.clone();
        let found = log.wait_for(|lines| lines.iter().any(|line| line.contains(text)));
        match timeout(LIMIT, found).await {
            Ok(Ok(lines)) => lines
                .iter()
                .find(|line| line.contains(text))
                .unwrap()
                .clone(),
            _ => panic!("{text:?} is not in the log: {:#?}", self.log.borrow()),
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.borrow().join("\n")
    }

    pub async fn client(&self) -> Client {
        Client::to(self.address).await
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    pub fn children(&self) -> Vec<Pid> {
        held::children(self.pid())
    }

    pub fn descriptors(&self) -> usize {
        held::by(self.pid()).descriptors
    }

    /// Returns the resident memory in bytes.
    pub fn resident(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<usize>().unwrap() << 10
    }

    /// Waits until the wrapper exits.
    pub async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the wrapper ends", || child.try_wait().unwrap()).await
    }
}

impl Drop for Wrapper {
    /// Stops the wrapper and its functions with two signals; kills it if it still runs after 10 s.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        for signal in [Signal::TERM, Signal::INT] {
            let _ = kill_process(self.pid, signal);
        }
        if end_within(&mut self.child, Duration::from_secs(10)).is_none() {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

// === impl Ended ===

impl Ended {
    pub(super) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stderr.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        let status = end_within(&mut child, LIMIT);
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let stderr = reader.join().unwrap().unwrap();
        assert!(status.is_some(), "{command:?} goes on: {stderr}");
        Self {
            code: status.and_then(|status| status.code()),
            stderr,
        }
    }

    /// Returns the error message, which must be one line.
    pub fn line(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').unwrap_or_default();
        assert!(
            line.starts_with("wrapper-server: ") && !line.contains('\n'),
            "not one line: {:?}",
            self.stderr
        );
        line
    }
}

fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let limit = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < limit => thread::sleep(Duration::from_millis(5)),
            ended => return ended.ok().flatten(),
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
