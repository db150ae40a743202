//! Suggests the most similar known flag for an unknown one.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Replaces the parser's suggestion, which includes flags that only share some letters.
pub(super) fn suggest(mut error: Error, command: &Command) -> Error {
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
    if let Some(near) = nearest(unknown.trim_start_matches('-'), known) {
        let near = ContextValue::String(format!("--{near}"));
        error.insert(ContextKind::SuggestedArg, near);
    }
    error
}

/// Returns the known name with the fewest typing errors, at most one per three letters.
fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
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
