//! Formats findings: a table for people, JSON for programs.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};
use runner_doctor::{Finding, State};
use serde_json::json;

use crate::report::{count, printable};

pub(super) fn table(findings: &[Finding], width: u16) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(["CHECK", "STATE", "FINDING"]);
    for Finding { check, outcome } in findings {
        let finding = printable(&outcome.finding).into_owned();
        table.add_row([*check, name(outcome.state), &finding]);
    }
    let mut text = format!("{table}\n");
    let wrong = findings
        .iter()
        .filter_map(|it| Some((it, it.outcome.fix.as_ref()?)));
    // Fixes follow the table in unwrapped lines, so that commands can be copied.
    for (Finding { check, outcome }, fix) in wrong {
        let state = name(outcome.state);
        let finding = printable(&outcome.finding).replace('\n', "\n  ");
        let _ = writeln!(text, "\n{state}: {check}: {finding}");
        let _ = writeln!(text, "  fix: {}", printable(fix).replace('\n', "\n       "));
    }
    let _ = writeln!(text, "\n{}", summary(findings));
    text
}

/// Formats the findings as JSON.
///
/// Names and states are stable; fields may be added.
pub(super) fn json(findings: &[Finding]) -> String {
    let document = json!({
        "findings": findings,
        "failed": number(findings, State::Failed),
        "warnings": number(findings, State::Warning),
        "skipped": number(findings, State::Skipped),
    });
    format!("{document:#}\n")
}

fn summary(findings: &[Finding]) -> String {
    let failed = number(findings, State::Failed);
    let warnings = count(number(findings, State::Warning), "warning");
    let skipped = number(findings, State::Skipped);
    let ok = number(findings, State::Ok);
    format!("{ok} ok, {warnings}, {failed} failed, {skipped} skipped")
}

fn number(findings: &[Finding], state: State) -> usize {
    let of_state = findings.iter().filter(|it| it.outcome.state == state);
    of_state.count()
}

fn name(state: State) -> &'static str {
    match state {
        State::Ok => "ok",
        State::Warning => "warning",
        State::Failed => "failed",
        State::Skipped => "skipped",
    }
}

#[cfg(test)]
mod tests {
    use runner_doctor::Outcome;

    use super::*;

    fn findings() -> Vec<Finding> {
        let finding = |check, outcome| Finding { check, outcome };
        vec![
            finding("api-server", Outcome::ok("Kubernetes v1.34.1 answers")),
            finding("clock", Outcome::skipped("it has none")),
            finding(
                "templates",
                Outcome::failed(
                    "the pod template must have exactly one container named \"function\", it has 0",
                    "kubectl -n fns edit podtemplate base-pod-template",
                ),
            ),
            finding("network-policies", Outcome::warning("none", "add one")),
        ]
    }

    #[test]
    fn each_finding_comes_with_its_fix() {
        insta::assert_snapshot!(table(&findings(), 80));
    }

    #[test]
    fn programs_get_names_that_stay() {
        insta::assert_snapshot!(json(&findings()));
    }

    #[test]
    fn replaces_escape_sequences_from_the_cluster() {
        let bad = Finding {
            check: "x",
            outcome: Outcome::failed("\x1b[2J", "\x1b[2J"),
        };
        assert!(!table(&[bad], 80).contains('\x1b'));
    }
}
