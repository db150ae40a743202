//! `krm status`: shows the state of a runner, once or continuously.

mod json;
mod screen;
mod show;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::{Args, ValueEnum};
use runner_client::{CallError, Client, GetStatusResponse, Options};
use runner_core::parse_worded_duration;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

use crate::{
    connection::{Server, failure},
    failure::Failure,
    report::width,
};
use screen::Screen;

/// Time limit of connecting and of the answer; a slower runner counts as unreachable.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Show the state of a function runner: functions, pods, queues, pod starts
///
/// Queries the runner on its gRPC port. Degradations and problems of the configuration are listed
/// below the tables.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct Status {
    /// Update the output until Ctrl-C, also across restarts of the runner
    #[arg(long, short = 'w')]
    watch: bool,

    /// Interval of --watch
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_worded_duration)]
    interval: Duration,

    /// Output format; with --watch, JSON is one document per line
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
  # Show the state of the runner on this machine
  krm status

  # Watch a runner in a cluster
  kubectl -n porch-system port-forward svc/function-runner 9445 &
  krm status --watch

  # List the pods that are ready
  krm status -o json | jq -r '.pod.functions[].pods[] | select(.state == \"ready\").name'

Exit codes:
  0  the runner answered, or --watch was ended
  1  the server does not offer the status service
  2  the command line is invalid
  3  the function runner cannot be reached";

// === impl Status ===

impl Status {
    /// Queries the runner and shows its status.
    ///
    /// # Errors
    /// Returns a failure if no runner answers that provides the status service.
    pub async fn run(&self) -> Result<(), Failure> {
        let client = self.server.client(Options {
            connect_timeout: TIMEOUT,
            ..Options::default()
        })?;
        if self.watch {
            return self.follow(&client).await;
        }
        let report = self.report(&client).await?;
        let text = match self.output {
            Format::Table => show::tables(&report, client.address(), width()),
            Format::Json => format!("{:#}\n", json::document(&report)),
        };
        written(anstream::stdout().write_all(text.as_bytes())).map(|_| ())
    }

    async fn follow(&self, client: &Client) -> Result<(), Failure> {
        let mut screen = match self.output {
            Format::Table if io::stdout().is_terminal() => Screen::terminal(),
            _ => Screen::appending(),
        };
        let cannot_watch = |error| Failure::failed(format!("cannot watch for Ctrl-C: {error}"));
        // Both ways to end the command restore the terminal's cursor.
        let mut terminated = signal(SignalKind::terminate()).map_err(cannot_watch)?;
        let outcome = tokio::select! {
            biased;
            ended = tokio::signal::ctrl_c() => ended.map_err(cannot_watch),
            _ = terminated.recv() => Ok(()),
            outcome = self.repeat(client, &mut screen) => outcome,
        };
        written(screen.leave(&mut io::stdout())).and(outcome)
    }

    /// Loops until the output is closed or the error is permanent.
    async fn repeat(&self, client: &Client, screen: &mut Screen) -> Result<(), Failure> {
        let mut ticks = interval(self.interval.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let frame = match self.report(client).await {
                Ok(report) => self.frame(&report, client.address()),
                Err(failure) if failure.is_unreachable() => self.trouble(&failure),
                Err(failure) => return Err(failure),
            };
            if !written(screen.show(&frame, &mut io::stdout()))? {
                return Ok(());
            }
        }
    }

    fn frame(&self, report: &GetStatusResponse, address: &str) -> String {
        match self.output {
            Format::Table => show::tables(report, address, width()),
            Format::Json => format!("{}\n", json::document(report)),
        }
    }

    fn trouble(&self, failure: &Failure) -> String {
        match self.output {
            Format::Table => format!("{}; retrying\n", failure.message()),
            Format::Json => format!("{}\n", serde_json::json!({"error": failure.message()})),
        }
    }

    async fn report(&self, client: &Client) -> Result<GetStatusResponse, Failure> {
        let report = client.status(TIMEOUT).await;
        report.map_err(|error| match &error {
            CallError::NotOffered { .. } => {
                Failure::failed(format!("{error}: it is an older function runner, or none"))
                    .hint("upgrade the runner, or name another with --address")
            }
            CallError::Timeout { .. } => Failure::unreachable(error.to_string()),
            error => failure(error),
        })
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
