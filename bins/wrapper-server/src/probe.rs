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
enum ProbeResult {
    Serving = 0,
    BadArguments = 1,
    Unreachable = 2,
    Failed = 3,
    Unhealthy = 4,
}

/// The health check that the arguments request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Probe {
    address: String,
    service: String,
    connect_timeout: Duration,
    rpc_timeout: Duration,
    verbose: bool,
}

/// Checks the health, prints the result and returns the exit code.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let (result, text) = match Probe::parse(words) {
        Ok(probe) => probe.run(),
        Err(error) => (ProbeResult::BadArguments, format!("error: {error}")),
    };
    if result == ProbeResult::Serving {
        println!("{text}");
    } else {
        eprintln!("{text}");
    }
    ExitCode::from(result as u8)
}

// === impl Probe ===

impl Probe {
    fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut probe = Self {
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
            let boolean = || flag.boolean().map_err(|cause| format!("-{name}: {cause}"));
            let mut text = || {
                let value = words.value(&flag);
                value.ok_or_else(|| format!("-{name} needs a value"))
            };
            match name {
                "addr" => probe.address = text()?,
                "service" => probe.service = text()?,
                "connect-timeout" => probe.connect_timeout = duration(name, &text()?)?,
                "rpc-timeout" => probe.rpc_timeout = duration(name, &text()?)?,
                "v" => probe.verbose = boolean()?,
                // Accepted and ignored: these flags do not affect a plaintext probe.
                "user-agent" | "rpc-header" => drop(text()?),
                "tls" | "spiffe" | "alts" => {
                    if boolean()? {
                        return Err(format!(
                            "-{name} is not supported: this probe checks the plaintext server of its \
                             own pod"
                        ));
                    }
                }
                _ => return Err(format!("unknown flag -{name}")),
            }
        }
        if probe.address.is_empty() {
            return Err("-addr not specified".to_owned());
        }
        Ok(probe)
    }

    fn run(&self) -> (ProbeResult, String) {
        match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime.block_on(self.call()),
            Err(error) => (ProbeResult::Failed, format!("error: cannot start: {error}")),
        }
    }

    async fn call(&self) -> (ProbeResult, String) {
        let timeout = self.connect_timeout;
        let endpoint = match Endpoint::from_shared(format!("http://{}", self.address)) {
            Ok(endpoint) => endpoint.connect_timeout(timeout),
            Err(error) => return (ProbeResult::BadArguments, format!("error: -addr: {error}")),
        };
        let channel = match tokio::time::timeout(timeout, endpoint.connect()).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.unwrap_or_else(|| error.to_string());
                return (
                    ProbeResult::Unreachable,
                    format!(
                        "error: failed to connect service {:?}: {cause}",
                        self.address
                    ),
                );
            }
            Err(_) => {
                let text = format!(
                    "timeout: failed to connect service {:?} within {timeout:?}",
                    self.address
                );
                return (ProbeResult::Unreachable, text);
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
                ProbeResult::Failed,
                format!("timeout: health rpc did not complete within {:?}", self.rpc_timeout),
            ),
            Ok(Err(status)) if status.code() == Code::Unimplemented => (
                ProbeResult::Failed,
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)".to_owned(),
            ),
            Ok(Err(status)) => (ProbeResult::Failed, format!("error: health rpc failed: {status}")),
            Ok(Ok(response)) => match response.into_inner().status() {
                ServingStatus::Serving => (ProbeResult::Serving, "status: SERVING".to_owned()),
                other => (
                    ProbeResult::Unhealthy,
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

    fn parse(line: &str) -> Result<Probe, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        Probe::parse(&words)
    }

    #[test]
    fn accepts_the_flags_of_pod_templates() {
        let probe =
            parse("-addr localhost:9446 --service=x -connect-timeout 250ms -rpc-timeout=2s -v")
                .unwrap();
        assert_eq!(
            (probe.address.as_str(), probe.service.as_str()),
            ("localhost:9446", "x")
        );
        assert_eq!(probe.connect_timeout, Duration::from_millis(250));
        assert_eq!(probe.rpc_timeout, Duration::from_secs(2));
        assert!(probe.verbose);
    }

    #[test]
    fn rejects_invalid_arguments_with_a_reason() {
        for (line, expected) in [
            ("", "-addr not specified"),
            ("-addr x -tls", "plaintext"),
            ("-addr x -rpc-timeout 0s", "greater than zero"),
            ("-addr x -rpc-timeout soon", "malformed duration"),
            ("-addr x -nope", "unknown flag -nope"),
            ("-addr", "-addr needs a value"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
