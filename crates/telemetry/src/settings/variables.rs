//! Reads single variables.
//!
//! An empty variable counts as unset. A malformed one also counts as unset and causes a warning.

use std::{cell::RefCell, fmt::Display, str::FromStr};

use crate::TelemetryError;

/// The environment (or a replacement in tests) and the problems found while reading it.
pub(super) struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    warnings: RefCell<Vec<TelemetryError>>,
}

// === impl Variables ===

impl<'a> Variables<'a> {
    pub(super) fn from_environment() -> Variables<'static> {
        Variables::new(&|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            lookup,
            warnings: RefCell::default(),
        }
    }

    /// Records a problem that does not prevent the process from starting.
    pub(super) fn warn(&self, problem: TelemetryError) {
        self.warnings.borrow_mut().push(problem);
    }

    /// Returns the recorded problems.
    pub(super) fn into_warnings(self) -> Vec<TelemetryError> {
        self.warnings.into_inner()
    }

    /// Returns the trimmed value of a variable, or `None` if it is unset or empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = (self.lookup)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns whether a variable is `true`; the default is `false`.
    pub(super) fn flag(&self, name: &'static str) -> bool {
        match self.get(name) {
            None => false,
            Some(value) if value.eq_ignore_ascii_case("true") => true,
            Some(value) => {
                if !value.eq_ignore_ascii_case("false") {
                    self.warn(unsupported(name, &value, &["true", "false"]));
                }
                false
            }
        }
    }

    pub(super) fn number<N>(&self, name: &'static str) -> Option<N>
    where
        N: FromStr<Err: Display>,
    {
        let value = self.get(name)?;
        let number = value.parse();
        number
            .map_err(|reason| {
                let problem = format!("{value:?} is not a usable number and is ignored: {reason}");
                self.warn(bad_value(name, problem));
            })
            .ok()
    }

    /// Returns a number greater than 0.
    pub(super) fn positive(&self, name: &'static str) -> Option<u64> {
        let number = self.number(name)?;
        if number == 0 {
            self.warn(bad_value(name, "must be greater than 0; it is ignored"));
        }
        (number > 0).then_some(number)
    }

    /// Returns a ratio from 0 to 1; the default is 1.
    pub(super) fn ratio(&self, name: &'static str) -> f64 {
        let ratio = self.number(name).unwrap_or(1.0);
        if (0.0..=1.0).contains(&ratio) {
            return ratio;
        }
        let problem = format!("{ratio} is not between 0 and 1 and is ignored");
        self.warn(bad_value(name, problem));
        1.0
    }

    /// Parses a list `key=value,key=value`.
    ///
    /// Warnings give the position of a malformed entry, not its text, which may be secret.
    pub(super) fn pairs(&self, name: &'static str) -> Vec<(String, String)> {
        let list = self.get(name).unwrap_or_default();
        let pair = |(index, entry): (usize, &str)| match entry.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Some((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => {
                let problem = format!("entry {} is not of the form key=value", index + 1);
                self.warn(bad_value(name, problem));
                None
            }
        };
        list.split_terminator(',')
            .enumerate()
            .filter_map(pair)
            .collect()
    }
}

pub(super) fn unsupported(
    variable: &'static str,
    value: &str,
    supported: &[&str],
) -> TelemetryError {
    TelemetryError::UnsupportedValue {
        variable,
        value: value.to_owned(),
        supported: supported.join(", "),
    }
}

pub(super) fn bad_value(variable: &'static str, problem: impl Into<String>) -> TelemetryError {
    TelemetryError::BadValue {
        variable,
        problem: problem.into(),
    }
}
