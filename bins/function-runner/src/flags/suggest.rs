//! Suggests the most similar known flag for an unknown one.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use runner_core::flags;

/// Replaces the parser's suggestion, which includes flags that only share some letters.
pub(super) fn nearest(mut error: Error, command: &Command) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    error.remove(ContextKind::SuggestedArg);
    // The parser's usage line shows the flag of its own suggestion.
    let usage = command.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) => unknown.clone(),
        _ => return error,
    };
    let known = command.get_arguments().filter_map(|flag| flag.get_long());
    if let Some(near) = flags::nearest(unknown.trim_start_matches('-'), known) {
        let near = ContextValue::String(format!("--{near}"));
        error.insert(ContextKind::SuggestedArg, near);
    }
    error
}
