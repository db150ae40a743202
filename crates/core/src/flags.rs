//! Go's conventions for flags, which all programs of an installation follow.
//!
//! A flag has one dash or two. Its value follows `=` or is the next word; a boolean has a value
//! only after `=`. A lone `--` ends the flags. The last of several values is used.

use std::{
    ffi::{OsStr, OsString},
    slice,
};

/// A word of a command line that names a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoFlag {
    /// Name without dashes.
    pub name: String,
    /// The text after `=`; `None` without `=`.
    pub value: Option<String>,
}

/// A reader of the flags at the start of a command line.
#[derive(Clone, Debug)]
pub struct GoFlags<'a, W> {
    words: slice::Iter<'a, W>,
}

// === impl GoFlag ===

impl GoFlag {
    /// Parses one word; returns `None` for a word without a dash.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        Some(Self {
            name: name.to_owned(),
            value,
        })
    }

    /// Returns the value of a boolean flag; without a value it is true.
    ///
    /// # Errors
    /// The value is not a boolean of Go's.
    pub fn boolean(&self) -> Result<bool, String> {
        self.value.as_deref().map_or(Ok(true), boolean)
    }
}

// === impl GoFlags ===

impl<'a, W: AsRef<OsStr>> GoFlags<'a, W> {
    /// Creates a reader of the words after the program's name.
    pub fn new(words: &'a [W]) -> Self {
        Self {
            words: words.iter(),
        }
    }

    /// Returns the next flag, or `None` at the end of the flags.
    ///
    /// # Errors
    /// The next word, if it is not a flag.
    pub fn next_flag(&mut self) -> Option<Result<GoFlag, String>> {
        let word = self.words.next()?.as_ref();
        if word == "--" {
            return None;
        }
        let word = word.to_string_lossy();
        Some(GoFlag::parse(&word).ok_or_else(|| word.into_owned()))
    }

    /// Returns the value of the flag that was read last; `None` if the command line ends before it.
    pub fn value(&mut self, flag: &GoFlag) -> Option<String> {
        flag.value.clone().or_else(|| {
            let next = self.words.next()?.as_ref();
            Some(next.to_string_lossy().into_owned())
        })
    }

    /// Returns the words that have not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [W] {
        self.words.as_slice()
    }
}

/// Turns `-flag` into `--flag`, except in the program's name and after a lone `--`.
///
/// A single letter stays as it is, for parsers with short flags such as `-h`.
pub fn with_two_dashes(words: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut flags_are_over = false;
    words.map(move |word| {
        flags_are_over |= word == "--";
        match word.to_str().and_then(|text| text.strip_prefix('-')) {
            Some(name) if !flags_are_over && is_long(name) => OsString::from(format!("--{name}")),
            _ => word,
        }
    })
}

fn is_long(name: &str) -> bool {
    name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Parses a boolean in any form that Go accepts.
///
/// # Errors
/// A hint for the user.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

/// Parses a log level; higher levels count as 5, so that existing deployments still start.
///
/// # Errors
/// A hint for the user.
pub fn log_level(text: &str) -> Result<u8, String> {
    match text.parse::<u32>() {
        Ok(level) => Ok(u8::try_from(level.min(5)).unwrap_or(5)),
        Err(_) => Err("write a number from 0 to 5".to_owned()),
    }
}

/// Parses a message size in bytes, at most `u32::MAX`: gRPC's length prefix has 32 bits.
///
/// # Errors
/// A hint for the user.
pub fn message_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if (1..=u32::MAX as usize).contains(&size) => Ok(size),
        _ => Err(format!("write a number of bytes from 1 to {}", u32::MAX)),
    }
}

/// Returns the known name with the fewest typing errors, at most one per three letters.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = unknown.len().max(3) / 3;
    known
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(errors, _)| *errors <= most)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_up_to_a_lone_double_dash() {
        let words = ["-a", "1", "--b=2", "-c", "x", "--", "-d"];
        let mut flags = GoFlags::new(&words);
        let a = flags.next_flag().unwrap().unwrap();
        assert_eq!((&*a.name, &a.value), ("a", &None));
        assert_eq!(flags.value(&a).as_deref(), Some("1"));
        let b = flags.next_flag().unwrap().unwrap();
        assert_eq!(flags.value(&b).as_deref(), Some("2"));
        let c = flags.next_flag().unwrap().unwrap();
        assert_eq!(c.boolean(), Ok(true));
        assert_eq!(flags.next_flag(), Some(Err("x".to_owned())));
        assert_eq!(flags.next_flag(), None);
        assert_eq!(flags.rest(), ["-d"]);
    }

    #[test]
    fn returns_no_value_at_the_end_of_the_command_line() {
        let mut flags = GoFlags::new(&["-a"]);
        let a = flags.next_flag().unwrap().unwrap();
        assert_eq!(flags.value(&a), None);
    }

    #[test]
    fn gives_long_flags_two_dashes() {
        let words = ["-name", "-h", "-port=1", "-1", "--x", "--", "-late"];
        let words = with_two_dashes(words.into_iter().map(OsString::from));
        let words: Vec<_> = words.map(|word| word.into_string().unwrap()).collect();
        assert_eq!(
            words,
            ["--name", "-h", "--port=1", "-1", "--x", "--", "-late"]
        );
    }

    #[test]
    fn suggests_only_names_with_few_typing_errors() {
        let known = ["config", "port", "pod-ttl", "pod-namespace", "functions"];
        for (unknown, near) in [
            ("prot", Some("port")),
            ("function", Some("functions")),
            ("podnamespace", Some("pod-namespace")),
            ("nosuchflag", None),
            ("no-such-flag", None),
            ("x", None),
        ] {
            assert_eq!(nearest(unknown, known.into_iter()), near, "{unknown}");
        }
    }
}
