//! `grpc-health-probe`: checks the health of a server, with the flags and exit codes that pod
//! templates rely on.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use runner_core::{flags::GoFlags, parse_duration};
use runner_proto::health::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic::{Code, transport::Endpoint};

/// The exit code of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Serving = 0,
    BadArguments = 1,
    Unreachable = 2,
    Failed = 3,
    Unhealthy = 4,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    address: String,
    service: String,
    connect_timeout: Duration,
    rpc_timeout: Duration,
    verbose: bool,
}

/// Checks the health, prints the result and returns the exit code.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let (verdict, text) = match Question::parse(words) {
        Ok(question) => question.ask(),
        Err(error) => (Verdict::BadArguments, format!("error: {error}")),
    };
    if verdict == Verdict::Serving {
        println!("{text}");
    } else {
        eprintln!("{text}");
    }
    ExitCode::from(verdict as u8)
}

// === impl Question ===

impl Question {
    fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut question = Self {
            address: String::new(),
            service: String::new(),
            connect_timeout: Duration::from_secs(1),
            rpc_timeout: Duration::from_secs(1),
            verbose: false,
        };
        let mut words = GoFlags::new(words);
        while let Some(flag) = words.next_flag() {
            let flag = flag.map_err(|word| format!("unexpected argument {word:?}"))?;
            let name = &*flag.name;
            let boolean = || flag.boolean().map_err(|why| format!("-{name}: {why}"));
            let mut text = || {
                let value = words.value(&flag);
                value.ok_or_else(|| format!("-{name} needs a value"))
            };
            match name {
                "addr" => question.address = text()?,
                "service" => question.service = text()?,
                "connect-timeout" => question.connect_timeout = duration(name, &text()?)?,
                "rpc-timeout" => question.rpc_timeout = duration(name, &text()?)?,
                "v" => question.verbose = boolean()?,
                // Accepted and ignored: these flags do not affect a plaintext probe.
                "user-agent" | "rpc-header" => drop(text()?),
                "tls" | "spiffe" | "alts" => {
                    if boolean()? {
                        return Err(format!(
                            "-{name} is not supported: this probe asks the plaintext server of its \
                             own pod"
                        ));
                    }
                }
                _ => return Err(format!("unknown flag -{name}")),
            }
        }
        if question.address.is_empty() {
            return Err("-addr not specified".to_owned());
        }
        Ok(question)
    }

    fn ask(&self) -> (Verdict, String) {
        match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime.block_on(self.call()),
            Err(error) => (Verdict::Failed, format!("error: cannot start: {error}")),
        }
    }

    async fn call(&self) -> (Verdict, String) {
        let timeout = self.connect_timeout;
        let endpoint = match Endpoint::from_shared(format!("http://{}", self.address)) {
            Ok(endpoint) => endpoint.connect_timeout(timeout),
            Err(error) => return (Verdict::BadArguments, format!("error: -addr: {error}")),
        };
        let channel = match tokio::time::timeout(timeout, endpoint.connect()).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                let why = why.unwrap_or_else(|| error.to_string());
                return (
                    Verdict::Unreachable,
                    format!("error: failed to connect service {:?}: {why}", self.address),
                );
            }
            Err(_) => {
                let text = format!(
                    "timeout: failed to connect service {:?} within {timeout:?}",
                    self.address
                );
                return (Verdict::Unreachable, text);
            }
        };
        if self.verbose {
            eprintln!("connected to {}", self.address);
        }
        let request = HealthCheckRequest {
            service: self.service.clone(),
        };
        let mut health = HealthClient::new(channel);
        match tokio::time::timeout(self.rpc_timeout, health.check(request)).await {
            Err(_) => (
                Verdict::Failed,
                format!("timeout: health rpc did not complete within {:?}", self.rpc_timeout),
            ),
            Ok(Err(status)) if status.code() == Code::Unimplemented => (
                Verdict::Failed,
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)".to_owned(),
            ),
            Ok(Err(status)) => (Verdict::Failed, format!("error: health rpc failed: {status}")),
            Ok(Ok(answer)) => match answer.into_inner().status() {
                ServingStatus::Serving => (Verdict::Serving, "status: SERVING".to_owned()),
                other => (
                    Verdict::Unhealthy,
                    format!("service unhealthy (responded with {:?})", other.as_str_name()),
                ),
            },
        }
    }
}

/// Parses a duration that is not zero.
fn duration(flag: &str, text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(duration) if duration.is_zero() => Err(format!(
            "-{flag} must be greater than zero (specified: {text})"
        )),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("-{flag}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Question, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        Question::parse(&words)
    }

    #[test]
    fn accepts_the_flags_of_pod_templates() {
        let question =
            parse("-addr localhost:9446 --service=x -connect-timeout 250ms -rpc-timeout=2s -v")
                .unwrap();
        assert_eq!(
            (question.address.as_str(), question.service.as_str()),
            ("localhost:9446", "x")
        );
        assert_eq!(question.connect_timeout, Duration::from_millis(250));
        assert_eq!(question.rpc_timeout, Duration::from_secs(2));
        assert!(question.verbose);
    }

    #[test]
    fn rejects_invalid_arguments_with_a_reason() {
        for (line, says) in [
            ("", "-addr not specified"),
            ("-addr x -tls", "plaintext"),
            ("-addr x -rpc-timeout 0s", "greater than zero"),
            ("-addr x -rpc-timeout soon", "malformed duration"),
            ("-addr x -nope", "unknown flag -nope"),
            ("-addr", "-addr needs a value"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
