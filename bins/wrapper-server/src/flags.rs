//! Parses the command line, without a library: that would be a fifth of this binary.

use std::{ffi::OsString, time::Duration};

use runner_core::{
    defaults,
    flags::{GoFlag, GoFlags, log_level, message_size},
};

pub(crate) const HELP: &str = "\
Serves a KRM function over gRPC: starts one process of ENTRYPOINT for each evaluation.

Usage: wrapper-server [FLAGS] -- ENTRYPOINT [ARGS…]
       wrapper-server install DIR
       wrapper-server hold

Flags (one dash or two, '=' or a space before the value):
  --port N                   port to listen on (default 9446)
  --max-request-body-size N  largest message in bytes, both ways (default 6291456)
  --verbosity N              log level, 0 to 5 (default 2); more counts as 5
  --standby N                processes kept ready; 0 turns it off (default 1)
  --max-parallel N           processes at the same time (default 0); 0: two for each
                             core, or one if the function computes for long
  --function-timeout N       time limit in seconds for calls without a deadline (default 300)
  --drain-timeout N          seconds for running evaluations to finish after SIGTERM (default 25)
  --help, --version

Called as grpc-health-probe or cp, it acts as that program.
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
pub(crate) enum Action {
    Serve(Flags),
    Help,
    Version,
}

/// An error in the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFlags {
    #[error("unknown flag --{0}; see --help")]
    Unknown(String),
    #[error("flag --{0} needs a value")]
    NoValue(String),
    #[error("malformed value {value:?} of flag --{flag}: {why}")]
    BadValue {
        flag: String,
        value: String,
        why: String,
    },
    #[error("the function's entrypoint is missing: write it after --")]
    NoEntrypoint,
    #[error("unexpected argument {0:?}: write the entrypoint after --")]
    Unexpected(String),
}

// === impl Flags ===

impl Default for Flags {
    fn default() -> Self {
        Self {
            port: defaults::WRAPPER_PORT,
            max_request_body_size: defaults::MAX_MESSAGE_SIZE,
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
    pub(crate) fn parse(words: &[OsString]) -> Result<Action, BadFlags> {
        let mut flags = Self::default();
        let mut words = GoFlags::new(words);
        let seconds = |min| move |text: &str| number(min, 86_400)(text).map(Duration::from_secs);
        while let Some(flag) = words.next_flag() {
            let flag = &flag.map_err(BadFlags::Unexpected)?;
            let words = &mut words;
            match &*flag.name {
                "help" | "h" => return Ok(Action::Help),
                "version" => return Ok(Action::Version),
                "port" => flags.port = value(words, flag, number(0, u16::MAX))?,
                "max-request-body-size" => {
                    flags.max_request_body_size = value(words, flag, message_size)?;
                }
                "verbosity" => flags.verbosity = value(words, flag, log_level)?,
                "standby" => flags.standby = value(words, flag, number(0, 64))?,
                "max-parallel" => flags.max_parallel = value(words, flag, number(0, 4096))?,
                "function-timeout" => flags.function_timeout = value(words, flag, seconds(1))?,
                "drain-timeout" => flags.drain_timeout = value(words, flag, seconds(0))?,
                name => return Err(BadFlags::Unknown(name.to_owned())),
            }
        }
        flags.entrypoint = words.rest().to_vec();
        match flags.entrypoint.first() {
            Some(program) if !program.is_empty() => Ok(Action::Serve(flags)),
            _ => Err(BadFlags::NoEntrypoint),
        }
    }
}

/// Reads and parses the value of a flag.
fn value<T>(
    words: &mut GoFlags<'_, OsString>,
    flag: &GoFlag,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, BadFlags> {
    let text = words.value(flag);
    let text = text.ok_or_else(|| BadFlags::NoValue(flag.name.clone()))?;
    parse(&text).map_err(|why| BadFlags::BadValue {
        flag: flag.name.clone(),
        value: text,
        why,
    })
}

/// Returns a parser of numbers in a range.
fn number<N>(min: N, max: N) -> impl Fn(&str) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    move |text| match text.parse::<N>() {
        Ok(number) if number >= min && number <= max => Ok(number),
        _ => Err(format!("write a number from {min} to {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Action, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        Flags::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn accepts_the_flags_of_existing_templates() {
        let action = parse("--port 9446 --max-request-body-size 100 --verbosity=9 -- /fn --a -- b");
        let Ok(Action::Serve(flags)) = action else {
            panic!("{action:?}")
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
    fn documents_its_defaults() {
        let defaults = Flags::default();
        for (flag, default) in [
            ("--port N", u64::from(defaults.port)),
            (
                "--max-request-body-size N",
                defaults.max_request_body_size as u64,
            ),
            ("--verbosity N", u64::from(defaults.verbosity)),
            ("--function-timeout N", defaults.function_timeout.as_secs()),
            ("--drain-timeout N", defaults.drain_timeout.as_secs()),
        ] {
            let line = HELP.lines().find(|line| line.contains(flag));
            let line = line.unwrap_or_else(|| panic!("{flag} is not documented"));
            assert!(line.contains(&format!("(default {default})")), "{line}");
        }
    }

    #[test]
    fn names_invalid_flags() {
        for (line, expected) in [
            ("", "entrypoint is missing"),
            ("--", "entrypoint is missing"),
            ("--port", "--port needs a value"),
            (
                "--port=x -- fn",
                "\"x\" of flag --port: write a number from 0 to 65535",
            ),
            (
                "-verbosity much -- fn",
                "--verbosity: write a number from 0 to 5",
            ),
            ("--colour -- fn", "unknown flag --colour"),
            ("fn", "unexpected argument \"fn\""),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
