//! A running function-runner: its address, its log and its exit status.

use std::{
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tokio::{sync::watch, time::timeout};

use super::{Client, Held, LIMIT, Setup, held, setup};

/// A runner that is stopped with all its functions at the end of the test.
pub struct Runner {
    pub address: SocketAddr,
    pub setup: Setup,
    child: Child,
    log: watch::Receiver<Vec<Value>>,
}

/// The result of a runner that exited by itself.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stderr: String,
}

// === impl Runner ===

impl Runner {
    /// Starts the command and waits until it serves.
    pub(super) async fn start(mut command: Command, setup: Setup) -> Self {
        let mut child = command.spawn().unwrap();
        let log = follow(child.stderr.take().unwrap());
        let mut runner = Self {
            address: SocketAddr::from(([0; 4], 0)),
            setup,
            child,
            log,
        };
        let serving = runner.logged("serving").await;
        runner.address = serving["address"].as_str().unwrap().parse().unwrap();
        runner
    }

    /// Waits for a log line whose message contains a text.
    pub async fn logged(&self, text: &str) -> Value {
        let mut log = self.log.clone();
        let has = |line: &&Value| line["message"].as_str().is_some_and(|m| m.contains(text));
        let found = log.wait_for(|lines| lines.iter().any(|line| has(&line)));
        match timeout(LIMIT, found).await {
            Ok(Ok(lines)) => lines.iter().find(has).unwrap().clone(),
            other => {
                let why = if other.is_err() {
                    "is not"
                } else {
                    "ended and was never"
                };
                panic!("{text:?} {why} in the log: {:#?}", self.log.borrow());
            }
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> Vec<Value> {
        self.log.borrow().clone()
    }

    pub async fn client(&self) -> Client {
        Client::to(self.address).await
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn held(&self) -> Held {
        held::by(self.pid())
    }

    /// Waits until the runner exits.
    pub async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        super::eventually("the runner ends", || child.try_wait().unwrap()).await
    }

    /// Runs the binary with flags that make it exit without serving.
    pub fn refuses(flags: &[&str]) -> Ended {
        Self::refuses_in(&[], flags)
    }

    /// Runs the binary with flags and variables that make it exit without serving.
    pub fn refuses_in(environment: &[(&str, &str)], flags: &[&str]) -> Ended {
        let mut command = setup::command();
        command.args(flags).envs(environment.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stderr.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        let status = end_within(&mut child, LIMIT);
        let killed = status.is_none();
        if killed {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let stderr = reader.join().unwrap().unwrap();
        assert!(!killed, "{flags:?} did not keep it from serving: {stderr}");
        Ended {
            code: status.and_then(|status| status.code()),
            stderr,
        }
    }
}

impl Drop for Runner {
    /// Stops the runner and its functions with two signals; kills what has not stopped after 10 s.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let functions = held::children(self.pid());
        let pid = Pid::from_child(&self.child);
        for signal in [Signal::TERM, Signal::INT] {
            let _ = kill_process(pid, signal);
        }
        if end_within(&mut self.child, Duration::from_secs(10)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            for function in functions {
                let _ = kill_process_group(function, Signal::KILL);
            }
        }
    }
}

// === impl Ended ===

impl Ended {
    /// Returns the error message, which must be one sentence; all other lines must be log lines.
    pub fn sentence(&self) -> &str {
        let is_log = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
        let mut said = self.stderr.lines().filter(|line| !is_log(line));
        let sentence = said.next().unwrap_or_default();
        assert!(
            sentence.starts_with("function-runner: ") && said.next().is_none(),
            "not one sentence: {}",
            self.stderr
        );
        sentence
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
fn follow(stderr: impl Read + Send + 'static) -> watch::Receiver<Vec<Value>> {
    let (lines, log) = watch::channel(Vec::new());
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // A panic, or an error at the end, is not JSON and becomes the message.
            let line = serde_json::from_str(&line)
                .unwrap_or_else(|_| serde_json::json!({"message": line, "level": "plain"}));
            lines.send_modify(|lines| lines.push(line));
        }
    });
    log
}
