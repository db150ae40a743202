//! Adapts Go's command line conventions to the parser.

use std::{ffi::OsString, time::Duration};

/// Turns `-flag` into `--flag`, except in the program's name and after a lone `--`.
pub(super) fn two_dashes(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut flags_are_over = false;
    args.map(move |arg| {
        flags_are_over |= arg == "--";
        match arg.to_str() {
            // A single letter is one of the parser's own short flags: -h, -V.
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

/// Parses a boolean in any form that Go accepts.
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

/// Parses a log level; higher levels count as 5, so that existing deployments still start.
pub(super) fn log_level(text: &str) -> Result<u8, String> {
    match text.parse::<u32>() {
        Ok(level) => Ok(u8::try_from(level.min(5)).unwrap_or(5)),
        Err(_) => Err("write a number from 0 to 5".to_owned()),
    }
}

/// Parses a message size, at most `u32::MAX`: gRPC's length prefix has 32 bits.
pub(super) fn message_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if (1..=u32::MAX as usize).contains(&size) => Ok(size),
        _ => Err(format!("write a number of bytes from 1 to {}", u32::MAX)),
    }
}
