//! The envelope of a list, its results, and their one-line text form.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// The parts of a ResourceList that are not resources; `kind` has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope {
    /// API version of the list, one of the supported versions.
    pub api_version: String,
    /// Results of the function, in their original order.
    pub results: Vec<FunctionResult>,
}

/// One entry of `results`; absent fields are empty strings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FunctionResult {
    /// Human-readable message.
    pub message: String,
    /// Severity; the default is `info`.
    pub severity: Severity,
    /// Reference to the resource that the result is about.
    pub resource_ref: Option<ResourceRef>,
    /// Reference to the field of that resource.
    pub field: Option<Field>,
    /// Reference to the file that contains the resource.
    pub file: Option<File>,
    /// Additional key-value pairs of the function.
    pub tags: BTreeMap<String, String>,
}

/// The severity of a result; unknown words count as the default, `info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    /// The package is invalid.
    Error,
    /// The package may be invalid.
    Warning,
    /// The message is only informational.
    #[default]
    Info,
}

/// A reference to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRef {
    /// Group and version of the resource.
    pub api_version: String,
    /// Kind of the resource.
    pub kind: String,
    /// Namespace of the resource; empty if it has none.
    pub namespace: String,
    /// Name of the resource.
    pub name: String,
}

/// A reference to a field of a resource, with its values if they are scalars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Path of the field, such as `spec.replicas`.
    pub path: String,
    /// Current value of the field.
    pub current_value: Option<String>,
    /// Value that the function proposes for the field.
    pub proposed_value: Option<String>,
}

/// A reference to a document in a file of the package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Path of the file, relative to the package.
    pub path: String,
    /// Index of the document in the file, starting at 0.
    pub index: u32,
}

// === impl Envelope ===

impl Envelope {
    /// Returns whether any result is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.results
            .iter()
            .any(|result| result.severity == Severity::Error)
    }

    /// Formats all results for people, separated by empty lines.
    #[must_use]
    pub fn results_text(&self) -> String {
        text(&self.results)
    }

    /// Formats the results whose message does not occur in `log`; empty if all messages occur.
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
        if let Some(resource) = self
            .resource_ref
            .as_ref()
            .filter(|reference| !reference.is_empty())
        {
            write!(f, " {resource}")?;
        }
        if let Some(field) = self.field.as_ref().filter(|field| !field.path.is_empty()) {
            write!(f, " {}", field.path)?;
        }
        // Block scalars end with a line break, which would leave a gap between results.
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
        let mut parts = self.parts().into_iter().filter(|part| !part.is_empty());
        f.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| write!(f, "/{part}"))
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
    #[case(None, None, "[info]: text")]
    #[case(None, field("spec.x"), "[info] spec.x: text")]
    #[case(resource("v1", "Pod", "ns", "p"), None, "[info] v1/Pod/ns/p: text")]
    #[case(
        resource("apps/v1", "", "", "p"),
        field("a.b"),
        "[info] apps/v1/p a.b: text"
    )]
    #[case(resource("", "Pod", "", ""), None, "[info] Pod: text")]
    #[case(resource("", "", "", ""), field(""), "[info]: text")]
    fn omits_empty_parts_of_a_result(
        #[case] resource_ref: Option<ResourceRef>,
        #[case] field: Option<Field>,
        #[case] line: &str,
    ) {
        let message = "text".to_owned();
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
    fn treats_an_unknown_severity_as_info(#[case] word: &str, #[case] severity: Severity) {
        assert_eq!(Severity::from_word(word), severity);
    }

    #[test]
    fn separates_results_by_empty_lines_and_detects_errors() {
        let result = |severity, message: &str| FunctionResult {
            message: message.into(),
            severity,
            ..FunctionResult::default()
        };
        let mut envelope = Envelope::default();
        assert_eq!(envelope.results_text(), "");
        envelope.results.push(result(Severity::Warning, "first\n"));
        assert!(!envelope.has_errors());
        envelope.results.push(result(Severity::Error, "second"));
        assert!(envelope.has_errors());
        assert_eq!(
            envelope.results_text(),
            "[warning]: first\n\n[error]: second"
        );
        assert_eq!(envelope.results_missing_in("fn: first"), "[error]: second");
        assert_eq!(envelope.results_missing_in("first, second"), "");
    }
}
