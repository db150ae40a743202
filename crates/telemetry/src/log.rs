//! Writes log lines to standard error, as text or as JSON lines.

#[cfg(feature = "json")]
mod json;
mod repeats;
mod verbosity;

use std::{io, str::FromStr};

use tracing::Subscriber;
use tracing_subscriber::{Layer, fmt, registry::LookupSpan};

pub(crate) use verbosity::is_own;

#[cfg(feature = "json")]
use json::JsonLines;
use verbosity::Verbosity;

/// The verbosity and the format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Verbosity from 0 to 5; higher values count as 5. The default is 2.
    ///
    /// | level | own crates | dependencies | adds |
    /// |---|---|---|---|
    /// | 0 | `ERROR` | `ERROR` | |
    /// | 1 | `WARN` | `WARN` | warnings |
    /// | 2 | `INFO` | `WARN` | normal operation (the default) |
    /// | 3 | `DEBUG` | `WARN` | health checks, decisions |
    /// | 4 | `TRACE` | `INFO` | resource lists of failed evaluations |
    /// | 5 | `TRACE` | `TRACE` | all events of dependencies |
    pub level: u8,
    /// Format of the log lines.
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, with colours on a terminal unless `NO_COLOR` is set (feature `ansi`).
    #[default]
    Auto,
    /// Text without colours.
    Text,
    /// One JSON object per line (feature `json`, otherwise text).
    Json,
}

/// The error of parsing an unknown [`LogFormat`] name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown log format {0:?}; allowed: auto, text, json")]
pub struct UnknownLogFormat(String);

/// Returns the layer that writes log lines.
pub(crate) fn layer<S>(options: LogOptions) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let verbosity = Verbosity::new(options.level);
    match options.format {
        #[cfg(feature = "json")]
        LogFormat::Json => JsonLines::new(io::stderr).with_filter(verbosity).boxed(),
        _ => {
            let text = fmt::layer().with_writer(io::stderr);
            #[cfg(feature = "ansi")]
            let text = text.with_ansi(options.format == LogFormat::Auto && uses_colours());
            text.with_filter(verbosity).boxed()
        }
    }
}

#[cfg(feature = "ansi")]
fn uses_colours() -> bool {
    use std::io::IsTerminal;
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

// === impl LogOptions ===

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: 2,
            format: LogFormat::Auto,
        }
    }
}

// === impl LogFormat ===

impl FromStr for LogFormat {
    type Err = UnknownLogFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(UnknownLogFormat(other.to_owned())),
        }
    }
}
