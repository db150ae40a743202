//! Go's habits on the command line, for a parser that has others.

use std::{ffi::OsString, time::Duration};

/// `-flag` as `--flag`. The program's name and what follows a lone `--` stay as they are.
pub(super) fn two_dashes(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut flags_are_over = false;
    args.map(move |arg| {
        flags_are_over |= arg == "--";
        match arg.to_str() {
            // One letter is a short flag of the parser's own: -h, -V.
            Some(text) if !flags_are_over && is_long(text) => OsString::from(format!("-{text}")),
            _ => arg,
        }
    })
}

fn is_long(text: &str) -> bool {
    let Some(name) = text.strip_prefix('-') else {
        return false;
    };
    name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The forms Go accepts.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    runner_config::parse_duration(text).map_err(|error| error.to_string())
}

/// Parses a log level: deployments that ask for more than there is still start.
pub(super) fn log_level(text: &str) -> Result<u8, String> {
    match text.parse::<u32>() {
        Ok(level) => Ok(u8::try_from(level.min(5)).unwrap_or(5)),
        Err(_) => Err("write a number from 0 to 5".to_owned()),
    }
}

/// gRPC's length prefix has 32 bits.
pub(super) fn message_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if (1..=u32::MAX as usize).contains(&size) => Ok(size),
        _ => Err(format!("write a number of bytes from 1 to {}", u32::MAX)),
    }
}
