//! `krm status`: shows the state of a runner, once or continuously.

mod json;
mod screen;
mod show;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::{Args, ValueEnum};
use runner_core::{defaults, parse_worded_duration};
use runner_proto::runner_status::{
    GetStatusRequest, GetStatusResponse, runner_status_client::RunnerStatusClient,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval, timeout},
};
use tonic::{Code, Status as GrpcStatus, transport::Channel};

use crate::{
    connection::{Server, innermost, runtime},
    failure::Failure,
    report::width,
};
use screen::Screen;

/// Time limit for an answer; a runner that exceeds it counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(5);

/// Show what a function runner is doing: functions, pods, queues, how pods started
///
/// The runner is asked over its own port. What is degraded and what is wrong with its configuration
/// is shown below the tables.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Status {
    /// Show it again and again until Ctrl-C; a runner that restarts is waited for
    #[arg(long, short = 'w')]
    watch: bool,

    /// How often --watch asks
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_worded_duration)]
    interval: Duration,

    /// How to show it; with --watch, JSON is one document a line
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Format,

    #[command(flatten)]
    server: Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  What the runner on this machine does:
    krm status

  Live, of a runner in a cluster:
    kubectl -n porch-system port-forward svc/function-runner 9445 &
    krm status --watch

  The pods that are ready, for a script:
    krm status -o json | jq -r '.pod.functions[].pods[] | select(.state == \"ready\").name'

Exit codes:
  0  the runner answered, or --watch was ended
  1  the server has no status to tell
  2  the command line is wrong
  3  the function runner cannot be reached";

// === impl Status ===

impl Status {
    /// Queries the runner and shows its status.
    ///
    /// # Errors
    /// Returns a failure if no runner answers that provides the status service.
    pub fn run(&self) -> Result<(), Failure> {
        runtime()?.block_on(async {
            if self.watch {
                self.follow().await
            } else {
                let report = self.ask(&mut None).await?;
                let text = match self.output {
                    Format::Table => show::tables(&report, self.server.address(), width()),
                    Format::Json => format!("{:#}\n", json::document(&report)),
                };
                written(anstream::stdout().write_all(text.as_bytes())).map(|_| ())
            }
        })
    }

    async fn follow(&self) -> Result<(), Failure> {
        let mut screen = match self.output {
            Format::Table if io::stdout().is_terminal() => Screen::terminal(),
            _ => Screen::appending(),
        };
        let unheard = |error| Failure::failed(format!("cannot watch for Ctrl-C: {error}"));
        // Both ways to end the command restore the terminal's cursor.
        let mut terminated = signal(SignalKind::terminate()).map_err(unheard)?;
        let outcome = tokio::select! {
            biased;
            ended = tokio::signal::ctrl_c() => ended.map_err(unheard),
            _ = terminated.recv() => Ok(()),
            outcome = self.repeat(&mut screen) => outcome,
        };
        written(screen.leave(&mut io::stdout())).and(outcome)
    }

    /// Loops until the output is closed or the error is permanent.
    async fn repeat(&self, screen: &mut Screen) -> Result<(), Failure> {
        let mut channel = None;
        let mut ticks = interval(self.interval.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let frame = match self.ask(&mut channel).await {
                Ok(report) => self.frame(&report),
                Err(failure) if failure.is_unreachable() => {
                    channel = None;
                    self.trouble(&failure)
                }
                Err(failure) => return Err(failure),
            };
            if !written(screen.show(&frame, &mut io::stdout()))? {
                return Ok(());
            }
        }
    }

    fn frame(&self, report: &GetStatusResponse) -> String {
        match self.output {
            Format::Table => show::tables(report, self.server.address(), width()),
            Format::Json => format!("{}\n", json::document(report)),
        }
    }

    fn trouble(&self, failure: &Failure) -> String {
        match self.output {
            Format::Table => format!("{}; trying again\n", failure.message()),
            Format::Json => format!("{}\n", serde_json::json!({"error": failure.message()})),
        }
    }

    /// Queries the status over the existing connection, or over a new one.
    async fn ask(&self, channel: &mut Option<Channel>) -> Result<GetStatusResponse, Failure> {
        let asked = async {
            let channel = match channel {
                Some(channel) => channel,
                None => channel.insert(self.server.connect(PATIENCE).await?),
            };
            let mut client = RunnerStatusClient::new(channel.clone())
                .max_decoding_message_size(defaults::MAX_REPORT_SIZE);
            let answer = client.get_status(GetStatusRequest {}).await;
            answer
                .map(tonic::Response::into_inner)
                .map_err(|status| self.failure(&status))
        };
        let late = |_| {
            Failure::unreachable(format!(
                "the function runner at {} did not answer within {PATIENCE:?}",
                self.server.address()
            ))
        };
        timeout(PATIENCE, asked).await.map_err(late)?
    }

    fn failure(&self, status: &GrpcStatus) -> Failure {
        use std::error::Error;
        let address = self.server.address();
        let reason = status
            .source()
            .map_or_else(|| status.message().to_owned(), innermost);
        match status.code() {
            Code::Unimplemented => Failure::failed(format!(
                "the server at {address} has no status to tell: it is an older function runner, or none"
            ))
            .hint("upgrade the runner, or name another with --address"),
            Code::Unknown | Code::Internal if status.source().is_some() => Failure::unreachable(
                format!("the server at {address} does not speak gRPC: {reason}"),
            )
            .hint("name the runner's own port, and check the TLS flags"),
            _ => Failure::unreachable(format!(
                "cannot ask the function runner at {address}: {reason}"
            )),
        }
    }
}

/// Returns whether the output is still read: `false` if the reader closed the pipe.
fn written(result: io::Result<()>) -> Result<bool, Failure> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write: {error}"))),
    }
}
