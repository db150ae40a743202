//! How the program ends when it does not end well.
//!
//! | code | meaning |
//! |---|---|
//! | 1 | the function, its results or the package are at fault |
//! | 2 | the command line is |
//! | 3 | the runner cannot be reached |

use std::{io::Write, process::ExitCode};

use anstyle::{AnsiColor, Style};

/// A sentence for a person and an exit code for a script.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    code: u8,
    message: String,
    /// Facts below the sentence, `name: value`.
    facts: Vec<(String, String)>,
    /// What to do about it.
    hint: Option<String>,
}

// === impl Failure ===

impl Failure {
    /// The function, its results or the package are at fault.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
            facts: Vec::new(),
            hint: None,
        }
    }

    /// The command line is at fault.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            ..Self::failed(message)
        }
    }

    /// Nobody answers.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self {
            code: 3,
            ..Self::failed(message)
        }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether nobody answered, which may be otherwise in a moment.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.code == 3
    }

    /// The sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Says it on standard error.
    pub fn report(&self) -> ExitCode {
        let mut stderr = anstream::stderr().lock();
        // Nobody is left to tell if this fails.
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
    fn a_failure_is_a_sentence_facts_and_advice() {
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
