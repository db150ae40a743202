//! Failures of the program and their exit codes.
//!
//! | code | meaning |
//! |---|---|
//! | 1 | the function, its results or the package are at fault |
//! | 2 | the command line is at fault |
//! | 3 | the runner, the cluster or the registry cannot be reached |

use std::{io::Write, process::ExitCode};

use anstyle::{AnsiColor, Style};

/// An error message for people and an exit code for scripts.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    code: u8,
    message: String,
    /// Details printed below the message, as `name: value`.
    facts: Vec<(String, String)>,
    /// Advice on how to solve the problem.
    hint: Option<String>,
}

// === impl Failure ===

impl Failure {
    /// Returns a failure of the function, its results or the package (exit code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
            facts: Vec::new(),
            hint: None,
        }
    }

    /// Returns a failure caused by the command line (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            ..Self::failed(message)
        }
    }

    /// Returns a failure to reach a server (exit code 3).
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self {
            code: 3,
            ..Self::failed(message)
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Adds advice on how to solve the problem.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns whether a server could not be reached, so that a retry may succeed.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.code == 3
    }

    /// Returns the message without details and hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints the failure to standard error and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let mut stderr = anstream::stderr().lock();
        // A failure to write to standard error cannot be reported anywhere.
        let _ = self.write(&mut stderr);
        ExitCode::from(self.code)
    }

    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let error = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let hint = Style::new().bold();
        writeln!(
            to,
            "{error}error:{error:#} {}",
            crate::report::printable(&self.message)
        )?;
        for (name, value) in &self.facts {
            let value = crate::report::printable(value);
            if value.trim_end().contains('\n') {
                writeln!(to, "  {name}:")?;
                value
                    .lines()
                    .try_for_each(|line| writeln!(to, "    {line}"))?;
            } else {
                writeln!(to, "  {name}: {}", value.trim_end())?;
            }
        }
        if let Some(text) = &self.hint {
            writeln!(to, "{hint}hint:{hint:#} {text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_message_details_and_hint() {
        let failure = Failure::unreachable("nobody answers")
            .with("reason", "GONE")
            .with("results", "[error] one\n[error] two\n")
            .hint("knock again");
        let mut text = anstream::StripStream::new(Vec::new());
        failure.write(&mut text).unwrap();
        insta::assert_snapshot!(String::from_utf8(text.into_inner()).unwrap(), @r"
        error: nobody answers
          reason: GONE
          results:
            [error] one
            [error] two
        hint: knock again
        ");
    }
}
