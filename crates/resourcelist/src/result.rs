//! What a scan finds: the envelope and the results in it, and how a result is said in one line.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// The parts of a ResourceList that are not resources; its `kind` has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope {
    /// One of the versions of ResourceList that are in use.
    pub api_version: String,
    /// What the function has to say, in its order.
    pub results: Vec<FunctionResult>,
}

/// One entry of `results`. Empty strings stand for fields that are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionResult {
    /// What happened, for people.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
    /// The resource it is about.
    pub resource_ref: Option<ResourceRef>,
    /// The field of the resource it is about.
    pub field: Option<Field>,
    /// The file the resource came from.
    pub file: Option<File>,
    /// Whatever else the function wants to attach.
    pub tags: BTreeMap<String, String>,
}

/// How bad a result is. Words that are none of these count as the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    /// The package is wrong.
    Error,
    /// The package may be wrong.
    Warning,
    /// Nothing is wrong.
    #[default]
    Info,
}

/// Names a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRef {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Names a field of a resource, with its values where they are scalars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// The way to the field, such as `spec.replicas`.
    pub path: String,
    /// What the field holds.
    pub current_value: Option<String>,
    /// What the function would have it hold.
    pub proposed_value: Option<String>,
}

/// Names a place in the package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// The file, relative to the package.
    pub path: String,
    /// Which of the file's documents, from zero.
    pub index: u32,
}

// === impl Envelope ===

impl Envelope {
    /// Whether any result is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.results
            .iter()
            .any(|result| result.severity == Severity::Error)
    }

    /// The results for people, with an empty line between them.
    #[must_use]
    pub fn results_text(&self) -> String {
        text(&self.results)
    }

    /// The results whose message a log does not hold, for people; empty if it holds all of them.
    #[must_use]
    pub fn results_missing_in(&self, log: &str) -> String {
        let missing = self.results.iter();
        text(missing.filter(|result| !log.contains(result.message.trim())))
    }
}

fn text<'a>(results: impl IntoIterator<Item = &'a FunctionResult>) -> String {
    let texts: Vec<String> = results.into_iter().map(ToString::to_string).collect();
    texts.join("\n\n")
}

// === impl FunctionResult ===

impl Display for FunctionResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.severity)?;
        if let Some(resource) = self.resource_ref.as_ref().filter(|it| !it.is_empty()) {
            write!(f, " {resource}")?;
        }
        if let Some(field) = self.field.as_ref().filter(|it| !it.path.is_empty()) {
            write!(f, " {}", field.path)?;
        }
        // Block scalars end in a line break that would leave a gap between results.
        write!(f, ": {}", self.message.trim_end())
    }
}

// === impl Severity ===

impl Severity {
    pub(crate) fn from_word(word: &str) -> Self {
        let is = |name: &str| word.trim().eq_ignore_ascii_case(name);
        if is("error") {
            Self::Error
        } else if is("warning") {
            Self::Warning
        } else {
            Self::Info
        }
    }
}

impl Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

// === impl ResourceRef ===

impl ResourceRef {
    fn parts(&self) -> [&str; 4] {
        [&self.api_version, &self.kind, &self.namespace, &self.name]
    }

    fn is_empty(&self) -> bool {
        self.parts().iter().all(|part| part.is_empty())
    }
}

impl Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.parts().into_iter().filter(|part| !part.is_empty());
        f.write_str(said.next().unwrap_or_default())?;
        said.try_for_each(|part| write!(f, "/{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<ResourceRef> {
        let [api_version, kind, namespace, name] =
            [api_version, kind, namespace, name].map(str::to_owned);
        Some(ResourceRef {
            api_version,
            kind,
            namespace,
            name,
        })
    }

    fn field(path: &str) -> Option<Field> {
        Some(Field {
            path: path.into(),
            ..Field::default()
        })
    }

    #[rstest::rstest]
    #[case(None, None, "[info]: said")]
    #[case(None, field("spec.x"), "[info] spec.x: said")]
    #[case(resource("v1", "Pod", "ns", "p"), None, "[info] v1/Pod/ns/p: said")]
    #[case(
        resource("apps/v1", "", "", "p"),
        field("a.b"),
        "[info] apps/v1/p a.b: said"
    )]
    #[case(resource("", "Pod", "", ""), None, "[info] Pod: said")]
    #[case(resource("", "", "", ""), field(""), "[info]: said")]
    fn a_result_leaves_out_its_empty_parts(
        #[case] resource_ref: Option<ResourceRef>,
        #[case] field: Option<Field>,
        #[case] line: &str,
    ) {
        let message = "said".to_owned();
        let result = FunctionResult {
            message,
            resource_ref,
            field,
            ..FunctionResult::default()
        };
        assert_eq!(result.to_string(), line);
    }

    #[rstest::rstest]
    #[case("error", Severity::Error)]
    #[case("Warning", Severity::Warning)]
    #[case("info", Severity::Info)]
    #[case("", Severity::Info)]
    #[case("catastrophe", Severity::Info)]
    fn a_severity_that_is_no_word_of_ours_is_info(#[case] word: &str, #[case] severity: Severity) {
        assert_eq!(Severity::from_word(word), severity);
    }

    #[test]
    fn results_are_apart_by_an_empty_line_and_errors_are_noticed() {
        let said = |severity, message: &str| FunctionResult {
            message: message.into(),
            severity,
            ..FunctionResult::default()
        };
        let mut envelope = Envelope::default();
        assert_eq!(envelope.results_text(), "");
        envelope.results.push(said(Severity::Warning, "first\n"));
        assert!(!envelope.has_errors());
        envelope.results.push(said(Severity::Error, "second"));
        assert!(envelope.has_errors());
        assert_eq!(
            envelope.results_text(),
            "[warning]: first\n\n[error]: second"
        );
        assert_eq!(envelope.results_missing_in("fn: first"), "[error]: second");
        assert_eq!(envelope.results_missing_in("first, second"), "");
    }
}
