//! The causes of an error: the chain of its sources.

use std::{error::Error, iter};

/// Returns an error and its sources, outermost first.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Returns the text of an error and of its sources in one line, outermost first.
///
/// A source is left out if the text before it already ends with it: many errors quote their source.
///
/// ```
/// let error: runner_core::BadDuration = runner_core::parse_duration("5 apples").unwrap_err();
/// assert!(runner_core::with_causes(&error).starts_with("malformed duration"));
/// ```
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Returns the text of the last source, which is the actual cause.
///
/// The errors before it name only the layers of a client.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("cannot connect")]
        Plain(#[source] io::Error),
        #[error("cannot connect: {0}")]
        Quoting(#[source] io::Error),
        #[error("attempt 3")]
        Outer(#[source] Box<Self>),
    }

    fn refused() -> io::Error {
        io::Error::other("connection refused")
    }

    #[test]
    fn joins_every_cause_once() {
        for layer in [Layer::Plain(refused()), Layer::Quoting(refused())] {
            let error = Layer::Outer(Box::new(layer));
            assert_eq!(
                with_causes(&error),
                "attempt 3: cannot connect: connection refused"
            );
        }
    }

    #[test]
    fn names_the_innermost_cause() {
        let error = Layer::Outer(Box::new(Layer::Plain(refused())));
        assert_eq!(innermost(&error), "connection refused");
        assert_eq!(innermost(&refused()), "connection refused");
    }
}
