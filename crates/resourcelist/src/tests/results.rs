//! Tests of well-formed and malformed results.

use rstest::rstest;

use super::{messages, scan_both};
use crate::{Envelope, Field, File, FunctionResult, ResourceRef, Severity};

fn envelope(results: &str) -> Envelope {
    let list = format!("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n{results}");
    scan_both(&list).unwrap()
}

fn result(results: &str) -> FunctionResult {
    envelope(results).results.remove(0)
}

#[test]
fn reads_every_field_of_a_result() {
    let said = result(
        "results:
- message: replicas missing
  severity: error
  resourceRef: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: cart}
  field:
    path: spec.replicas
    currentValue: 1
    proposedValue: 3
  file: {path: cart.yaml, index: 2}
  tags: {team: a, message: b, '<<': c}
",
    );
    let text = str::to_owned;
    let resource_ref = ResourceRef {
        api_version: text("apps/v1"),
        kind: text("Deployment"),
        namespace: text("shop"),
        name: text("cart"),
    };
    let field = Field {
        path: text("spec.replicas"),
        current_value: Some(text("1")),
        proposed_value: Some(text("3")),
    };
    let expected = FunctionResult {
        message: text("replicas missing"),
        severity: Severity::Error,
        resource_ref: Some(resource_ref),
        field: Some(field),
        file: Some(File {
            path: text("cart.yaml"),
            index: 2,
        }),
        tags: [("team", "a"), ("message", "b"), ("<<", "c")]
            .map(|(name, value)| (text(name), text(value)))
            .into(),
    };
    assert_eq!(said, expected);
    assert_eq!(
        said.to_string(),
        "[error] apps/v1/Deployment/shop/cart spec.replicas: replicas missing"
    );
}

#[test]
fn reads_the_original_form_of_results() {
    let said = envelope(
        "results:
  name: check
  items:
  - message: odd
    severity: warning
    resourceRef: {apiVersion: v1, kind: Pod, metadata: {namespace: n, name: p}}
    field: {path: a, suggestedValue: b}
",
    );
    assert_eq!(said.results_text(), "[warning] v1/Pod/n/p a: odd");
}

#[rstest]
#[case("results: nothing\n", &[])]
#[case("results:\n", &[])]
#[case("results: {}\n", &[])]
#[case("results: {items: x}\n", &[])]
#[case("results: [said, ~, [a, b], {message: hi}]\n", &["said", "hi"])]
#[case("results: [{message: {a: b}, severity: [error], file: 3, tags: [x], field: x}]\n", &[""])]
#[case("results: [{message: 12}, {message: true}, {message: null}, {message: 'null'}]\n", &["12", "true", "", "null"])]
#[case("results: [{unknown: [{message: no}], message: hi, more: {message: no}}]\n", &["hi"])]
#[case("results: [{message: first, message: hi}]\n", &["hi"])]
#[case("results: [{message: hi, file: {index: many}, resourceRef: {name: [a]}}]\n", &["hi"])]
#[case("results: [{message: hi, ? [message] : no, ? {message: no} : no, ~: no}]\n", &["hi"])]
fn tolerates_malformed_results(#[case] results: &str, #[case] said: &[&str]) {
    assert_eq!(messages(&envelope(results)), said);
}

#[rstest]
#[case(
    "results:\n- &a {message: hi, severity: error}\n- *a\n",
    "[error]: hi\n\n[error]: hi"
)]
#[case(
    "results:\n- {resourceRef: &r {kind: Pod, name: p}, message: a}\n- {resourceRef: *r, message: b}\n",
    "[info] Pod/p: a\n\n[info] Pod/p: b"
)]
#[case("results:\n- &a {message: hi, of: *a}\n", "[info]: hi")]
#[case("results: &a [*a, hi]\n", "[info]: hi")]
#[case("results:\n- {x: &m message, *m : hi}\n", "[info]: hi")]
#[case("results:\n- {x: &a one, y: &a hi, message: *a}\n", "[info]: hi")]
#[case(
    "results:\n- {<<: {message: no, severity: error}, message: hi}\n",
    "[error]: hi"
)]
#[case(
    "results:\n- {message: hi, <<: [{message: no}, {severity: error}]}\n",
    "[error]: hi"
)]
#[case(
    "results:\n- {message: hi, severity: info, <<: {severity: error}}\n",
    "[info]: hi"
)]
#[case(
    "results:\n- {severity: warning, <<: {severity: error}}\n- {message: hi, <<: {severity: error}}\n",
    "[warning]: \n\n[error]: hi"
)]
#[case(
    "results:\n- {message: '', <<: [{message: no, severity: info}, {severity: error}]}\n",
    "[info]: "
)]
fn follows_aliases_and_merge_keys(#[case] results: &str, #[case] text: &str) {
    assert_eq!(envelope(results).results_text(), text);
}

#[rstest]
#[case(r#"\u00e9\n\/\\\""#, "é\n/\\\"")]
#[case(r"\ud83d\ude00", "😀")]
#[case(r"\ud83d \ud83d\u0041 \ude00", "\u{fffd} \u{fffd}A \u{fffd}")]
#[case(r"\t\b\f\r.", "\t\u{8}\u{c}\r.")]
fn decodes_json_strings(#[case] written: &str, #[case] message: &str) {
    let list = format!(
        r#"{{"kind":"ResourceList","apiVersion":"config.kubernetes.io/v1","results":[{{"message":"{written}"}}]}}"#
    );
    assert_eq!(messages(&crate::scan(list.as_bytes()).unwrap()), [message]);
}
