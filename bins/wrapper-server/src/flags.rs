//! Parses the command line, without a library: that would be a fifth of this binary.

use std::{ffi::OsString, time::Duration};

pub(crate) const HELP: &str = "\
Serves a KRM function over gRPC: one process of ENTRYPOINT an evaluation.

Usage: wrapper-server [FLAGS] -- ENTRYPOINT [ARGS…]
       wrapper-server install DIR
       wrapper-server hold

Flags (one dash or two, '=' or a space before the value):
  --port N                   port to listen on (default 9446)
  --max-request-body-size N  largest message in bytes, both ways (default 6291456)
  --verbosity N              how much to log, 0 to 5 (default 2); more counts as 5
  --standby N                processes kept ready; 0 turns it off (default 1)
  --max-parallel N           processes at once; 0: two a core, or one that computes
                             for long (default 0)
  --function-timeout N       seconds an evaluation may take whose caller gives no deadline (default 300)
  --drain-timeout N          seconds running evaluations may go on after SIGTERM (default 25)
  --help, --version

Also answers as grpc-health-probe and cp, if called by those names.
";

/// The settings of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) port: u16,
    pub(crate) max_request_body_size: usize,
    pub(crate) verbosity: u8,
    pub(crate) standby: usize,
    pub(crate) max_parallel: usize,
    pub(crate) function_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) entrypoint: Vec<OsString>,
}

/// The action that the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Serve(Flags),
    Help,
    Version,
}

/// An error in the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFlags {
    #[error("unknown flag {0}; see --help")]
    Unknown(String),
    #[error("flag --{0} needs a value")]
    NoValue(String),
    #[error("malformed value {value:?} of flag --{flag}: {why}")]
    BadValue {
        flag: String,
        value: String,
        why: String,
    },
    #[error("the function's entrypoint is missing: write it behind --")]
    NoEntrypoint,
    #[error("unexpected argument {0:?}: the entrypoint goes behind --")]
    Unexpected(String),
}

// === impl Flags ===

impl Default for Flags {
    fn default() -> Self {
        Self {
            port: 9446,
            max_request_body_size: 6_291_456,
            verbosity: 2,
            standby: 1,
            max_parallel: 0,
            function_timeout: Duration::from_secs(300),
            drain_timeout: Duration::from_secs(25),
            entrypoint: Vec::new(),
        }
    }
}

impl Flags {
    /// Parses the arguments after the program's name.
    pub(crate) fn parse(words: &[OsString]) -> Result<Asked, BadFlags> {
        let mut flags = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                flags.entrypoint = words.cloned().collect();
                break;
            }
            let text = word.to_string_lossy();
            let Some(named) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')) else {
                return Err(BadFlags::Unexpected(text.into_owned()));
            };
            let (name, value) = match named.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (named, None),
            };
            match name {
                "help" | "h" => return Ok(Asked::Help),
                "version" => return Ok(Asked::Version),
                _ => {}
            }
            let mut value = || {
                value
                    .clone()
                    .or_else(|| words.next().map(|next| next.to_string_lossy().into_owned()))
                    .ok_or_else(|| BadFlags::NoValue(name.to_owned()))
            };
            match name {
                "port" => flags.port = number(name, &value()?, 0, u16::MAX)?,
                "max-request-body-size" => {
                    flags.max_request_body_size = number(
                        name,
                        &value()?,
                        1,
                        usize::try_from(u32::MAX).unwrap_or(usize::MAX),
                    )?;
                }
                "verbosity" => {
                    let level = number(name, &value()?, 0, u16::MAX)?;
                    flags.verbosity = u8::try_from(level.min(5)).unwrap_or(5);
                }
                "standby" => flags.standby = number(name, &value()?, 0, 64)?,
                "max-parallel" => flags.max_parallel = number(name, &value()?, 0, 4096)?,
                "function-timeout" => {
                    flags.function_timeout =
                        Duration::from_secs(number(name, &value()?, 1, 86_400)?);
                }
                "drain-timeout" => {
                    flags.drain_timeout = Duration::from_secs(number(name, &value()?, 0, 86_400)?);
                }
                _ => return Err(BadFlags::Unknown(text.into_owned())),
            }
        }
        match flags.entrypoint.first() {
            Some(program) if !program.is_empty() => Ok(Asked::Serve(flags)),
            _ => Err(BadFlags::NoEntrypoint),
        }
    }
}

fn number<N>(flag: &str, value: &str, least: N, most: N) -> Result<N, BadFlags>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    match value.parse::<N>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(BadFlags::BadValue {
            flag: flag.to_owned(),
            value: value.to_owned(),
            why: format!("write a number from {least} to {most}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Asked, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        Flags::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn accepts_the_flags_of_existing_templates() {
        let asked = parse("--port 9446 --max-request-body-size 100 --verbosity=9 -- /fn --a -- b");
        let Ok(Asked::Serve(flags)) = asked else {
            panic!("{asked:?}")
        };
        assert_eq!(
            (flags.port, flags.max_request_body_size, flags.verbosity),
            (9446, 100, 5)
        );
        assert_eq!(
            flags.entrypoint,
            ["/fn", "--a", "--", "b"].map(OsString::from)
        );
    }

    #[test]
    fn names_invalid_flags() {
        for (line, says) in [
            ("", "entrypoint is missing"),
            ("--", "entrypoint is missing"),
            ("--port", "--port needs a value"),
            (
                "--port=x -- fn",
                "\"x\" of flag --port: write a number from 0 to 65535",
            ),
            (
                "-verbosity much -- fn",
                "--verbosity: write a number from 0 to 65535",
            ),
            ("--colour -- fn", "unknown flag --colour"),
            ("fn", "unexpected argument \"fn\""),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
