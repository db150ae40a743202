//! Reads single variables: an empty one counts as unset, a malformed one is an error.

use std::{fmt::Display, str::FromStr};

use crate::TelemetryError;

/// The environment, or a test's stand-in for it.
pub(super) struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

// === impl Variables ===

impl<'a> Variables<'a> {
    pub(super) fn of_process() -> Variables<'static> {
        Variables(&|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    #[cfg(test)]
    pub(super) fn of(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Variables(lookup)
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = (self.0)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<bool, TelemetryError> {
        match self.get(name) {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(unknown(name, &value, &["true", "false"])),
        }
    }

    pub(super) fn number<N>(&self, name: &'static str) -> Result<Option<N>, TelemetryError>
    where
        N: FromStr<Err: Display>,
    {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(reason) => Err(bad(
                name,
                format!("{value:?} is not a usable number: {reason}"),
            )),
        }
    }

    pub(super) fn positive(&self, name: &'static str) -> Result<Option<u64>, TelemetryError> {
        match self.number(name)? {
            Some(0) => Err(bad(name, "must be greater than 0")),
            number => Ok(number),
        }
    }

    /// A share from 0 to 1; all of it where unset.
    pub(super) fn ratio(&self, name: &'static str) -> Result<f64, TelemetryError> {
        let ratio = self.number(name)?.unwrap_or(1.0);
        if (0.0..=1.0).contains(&ratio) {
            Ok(ratio)
        } else {
            Err(bad(name, format!("{ratio} is not between 0 and 1")))
        }
    }

    /// A list `key=value,key=value`. The error names the place, not the text, which may be
    /// secret.
    pub(super) fn pairs(
        &self,
        name: &'static str,
    ) -> Result<Vec<(String, String)>, TelemetryError> {
        let list = self.get(name).unwrap_or_default();
        list.split_terminator(',')
            .enumerate()
            .map(|(index, entry)| match entry.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    Ok((key.trim().to_owned(), value.trim().to_owned()))
                }
                _ => Err(bad(
                    name,
                    format!("entry {} is not of the form key=value", index + 1),
                )),
            })
            .collect()
    }
}

pub(super) fn unknown(variable: &'static str, value: &str, allowed: &[&str]) -> TelemetryError {
    TelemetryError::UnknownValue {
        variable,
        value: value.to_owned(),
        allowed: allowed.join(", "),
    }
}

pub(super) fn bad(variable: &'static str, problem: impl Into<String>) -> TelemetryError {
    TelemetryError::BadValue {
        variable,
        problem: problem.into(),
    }
}
