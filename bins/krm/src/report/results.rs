//! Formats a function's results as a table.

use comfy_table::{ContentArrangement, Table, presets};
use runner_resourcelist::{FunctionResult, ResourceRef, Severity};

use super::printable;

/// Returns the table without a trailing newline, or `None` if there are no results.
#[must_use]
pub fn table(results: &[FunctionResult], width: u16) -> Option<String> {
    if results.is_empty() {
        return None;
    }
    let has_files = results.iter().any(|result| result.file.is_some());
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    let mut header = vec!["SEVERITY", "RESOURCE", "FIELD", "MESSAGE"];
    if has_files {
        header.push("FILE");
    }
    table.set_header(header);
    for result in results {
        let mut row = vec![
            severity(result.severity).to_owned(),
            result
                .resource_ref
                .as_ref()
                .map(resource)
                .unwrap_or_default(),
            result
                .field
                .as_ref()
                .map(|field| field.path.clone())
                .unwrap_or_default(),
            message(result),
        ];
        if has_files {
            row.push(
                result
                    .file
                    .as_ref()
                    .map(|file| file.path.clone())
                    .unwrap_or_default(),
            );
        }
        table.add_row(row.iter().map(|cell| printable(cell).into_owned()));
    }
    Some(table.to_string())
}

/// Returns the number of results of each severity, worst first: `1 error, 2 warnings`.
#[must_use]
pub fn summary(results: &[FunctionResult]) -> String {
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Info]
        .into_iter()
        .filter_map(|kind| {
            let number = results
                .iter()
                .filter(|result| result.severity == kind)
                .count();
            let noun = if kind == Severity::Info {
                "note"
            } else {
                severity(kind)
            };
            (number > 0).then(|| super::count(number, noun))
        })
        .collect();
    if parts.is_empty() {
        "no results".to_owned()
    } else {
        parts.join(", ")
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

fn resource(resource: &ResourceRef) -> String {
    let parts = [&resource.kind, &resource.namespace, &resource.name];
    let parts: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("/")
}

fn message(result: &FunctionResult) -> String {
    let mut text = result.message.trim_end().to_owned();
    let Some(field) = &result.field else {
        return text;
    };
    if let (Some(current), Some(proposed)) = (&field.current_value, &field.proposed_value) {
        text.push_str(&format!(" ({current} → {proposed})"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_resourcelist::Field;

    #[test]
    fn results_are_a_table() {
        let results = [
            FunctionResult {
                message: "no namespace".to_owned(),
                severity: Severity::Error,
                resource_ref: Some(ResourceRef {
                    kind: "Service".to_owned(),
                    name: "web".to_owned(),
                    ..ResourceRef::default()
                }),
                field: Some(Field {
                    path: "metadata.namespace".to_owned(),
                    current_value: Some("a".to_owned()),
                    proposed_value: Some("b".to_owned()),
                }),
                ..FunctionResult::default()
            },
            FunctionResult {
                message: "done".to_owned(),
                ..FunctionResult::default()
            },
        ];
        insta::assert_snapshot!(table(&results, 100).unwrap());
        assert_eq!(summary(&results), "1 error, 1 note");
        assert_eq!(summary(&[]), "no results");
        assert!(table(&[], 100).is_none());
    }
}
