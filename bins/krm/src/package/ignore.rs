//! `.krmignore`: files of a package that are not resources.

/// The patterns of one `.krmignore`, as in a `.gitignore`.
///
/// Later lines win, `!` negates, a trailing `/` matches directories only, and a `/` elsewhere
/// anchors the pattern to the directory of the `.krmignore`.
#[derive(Debug, Default)]
pub struct Ignore(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    glob: String,
    anchored: bool,
    directory: bool,
    negated: bool,
}

// === impl Ignore ===

impl Ignore {
    /// Parses the lines of a `.krmignore`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Pattern::parse).collect())
    }

    /// Returns whether a path, relative to the file's directory, is ignored, or `None` if no line
    /// matches.
    #[must_use]
    pub fn verdict(&self, path: &str, is_directory: bool) -> Option<bool> {
        self.0
            .iter()
            .rev()
            .find(|pattern| pattern.matches(path, is_directory))
            .map(|pattern| !pattern.negated)
    }
}

// === impl Pattern ===

impl Pattern {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (negated, line) = line
            .strip_prefix('!')
            .map_or((false, line), |rest| (true, rest));
        let (directory, line) = line
            .strip_suffix('/')
            .map_or((false, line), |rest| (true, rest));
        let anchored = line.contains('/');
        let glob = line.trim_start_matches('/').to_owned();
        Some(Self {
            glob,
            anchored,
            directory,
            negated,
        })
    }

    fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.directory && !is_directory {
            return false;
        }
        let subject = if self.anchored {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        glob(self.glob.as_bytes(), subject.as_bytes())
    }
}

/// Matches a glob.
///
/// `*` and `?` match within a path segment, `**` matches across segments. Takes linear time except
/// for nested `**`.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', b'*', b'/', rest @ ..], _) => {
            glob(rest, text)
                || text
                    .iter()
                    .enumerate()
                    .any(|(at, byte)| *byte == b'/' && glob(rest, &text[at + 1..]))
        }
        ([b'*', b'*'], _) => true,
        ([b'*', rest @ ..], _) => {
            let part = text
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(text.len());
            (0..=part).any(|at| glob(rest, &text[at..]))
        }
        ([b'?', pattern @ ..], [byte, text @ ..]) if *byte != b'/' => glob(pattern, text),
        ([expected, pattern @ ..], [byte, text @ ..]) if expected == byte => glob(pattern, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("*.tmpl.yaml", "a/b.tmpl.yaml", Some(true))]
    #[case("*.tmpl.yaml", "a/b.yaml", None)]
    #[case("/top.yaml", "top.yaml", Some(true))]
    #[case("/top.yaml", "a/top.yaml", None)]
    #[case("a/*.yaml", "a/b.yaml", Some(true))]
    #[case("a/*.yaml", "a/b/c.yaml", None)]
    #[case("a/**", "a/b/c.yaml", Some(true))]
    #[case("**/c.yaml", "a/b/c.yaml", Some(true))]
    #[case("charts/", "charts", None)]
    #[case("*.yaml\n!keep.yaml", "keep.yaml", Some(false))]
    #[case("# comment\n\n", "# comment", None)]
    #[case("v?.yaml", "v1.yaml", Some(true))]
    fn matches_patterns(#[case] lines: &str, #[case] path: &str, #[case] expected: Option<bool>) {
        assert_eq!(Ignore::parse(lines).verdict(path, false), expected);
    }

    #[test]
    fn matches_directories_for_a_trailing_slash() {
        assert_eq!(Ignore::parse("charts/").verdict("charts", true), Some(true));
    }
}
