//! Tests of lists with the same content in many layouts.

use rstest::rstest;

use super::{messages, scan_both, uses_fast_path};

/// Layouts that the fast path scans without parsing the items.
#[rstest]
#[case::plain(
    "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nresults:\n- message: hi\n"
)]
#[case::other_order(
    "results:\n- message: hi\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\n"
)]
#[case::no_final_line_break(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults: [{message: hi}]"
)]
#[case::marker_and_comments(
    "# one\n\n  # two\n--- # three\n# four\nkind: ResourceList # five\napiVersion: config.kubernetes.io/v1\nresults: # six\n  # seven\n- message: hi # eight\n# nine\n"
)]
#[case::end_markers(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n...\n---\n# done\n"
)]
#[case::carriage_returns(
    "kind: ResourceList\r\napiVersion: config.kubernetes.io/v1\r\n\r\nresults:\r\n- message: hi\r\n"
)]
#[case::indented_sequences(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems:\n  - kind: Pod\n    results: [x]\nresults:\n  - message: hi\n"
)]
#[case::items_that_look_like_a_list(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems:\n- kind: ResourceList\n  results:\n  - message: inner\n- kind: ConfigMap\n  data:\n    x: |\n      kind: ResourceList\n      results:\n      - message: in text\n\n      apiVersion: v9\n    y: \"\n      kind: a\n      results: b\"\nresults:\n- message: hi\n"
)]
#[case::values_on_the_next_line(
    "kind:\n  ResourceList\napiVersion:\n  'config.kubernetes.io/v1'\nresults:\n\n\n- message:\n    hi\n"
)]
#[case::anchors_within_results(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems: [&a b]\nresults:\n- {other: &a hi, message: *a}\n"
)]
#[case::tags(
    "kind: !!str ResourceList\napiVersion: config.kubernetes.io/v1\nresults: !!seq\n- !!map {message: hi}\n"
)]
#[case::block_scalar(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: |-\n    hi\n"
)]
#[case::byte_after_byte(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nfunctionConfig:\n  data: {results: no}\nmetadata: {}\nresults:\n- message: hi\n"
)]
#[case::broken_items(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems:\n- }{\nresults:\n- message: hi\n"
)]
#[case::json(r#"{"kind":"ResourceList","apiVersion":"config.kubernetes.io/v1","items":[{"kind":"ResourceList","results":["}\"{",[],{},1e3,null]}],"results":[{"message":"hi"}]}"#)]
#[case::pretty_json(
    "\n{\n\t\"apiVersion\": \"config.kubernetes.io/v1\",\n\t\"kind\": \"ResourceList\",\n\t\"items\": [],\n\t\"results\": [ { \"message\": \"hi\" } ]\n}\n"
)]
fn scans_without_parsing_the_items(#[case] list: &str) {
    assert!(uses_fast_path(list), "parsed as a whole: {list}");
    assert_eq!(messages(&scan_both(list).unwrap()), ["hi"]);
}

/// Layouts that need the whole list to be parsed.
#[rstest]
#[case::flow("{kind: ResourceList, apiVersion: config.kubernetes.io/v1, results: [{message: hi}]}")]
#[case::json_with_a_comment(
    "{\"kind\": \"ResourceList\", # why\n\"apiVersion\": \"config.kubernetes.io/v1\", \"results\": [{\"message\": \"hi\"}]}"
)]
#[case::json_with_yaml_items(
    "{\"kind\": \"ResourceList\", \"items\": [a \"], \"apiVersion\": \"config.kubernetes.io/v1\", \"results\": [{\"message\": \"hi\"}]}"
)]
#[case::quoted_keys(
    "\"kind\": ResourceList\n'apiVersion': config.kubernetes.io/v1\n\"results\":\n- message: hi\n"
)]
#[case::explicit_keys(
    "? kind\n: ResourceList\n? apiVersion\n: config.kubernetes.io/v1\n? results\n: - message: hi\n"
)]
#[case::collections_as_keys(
    "? [kind, x]\n: {kind: no}\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- ? {a: b}\n  : c\n  message: hi\n"
)]
#[case::indented_root(
    "  kind: ResourceList\n  apiVersion: config.kubernetes.io/v1\n  results:\n  - message: hi\n"
)]
#[case::directives(
    "%YAML 1.2\n---\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n"
)]
#[case::old_line_breaks(
    "kind: ResourceList\rapiVersion: config.kubernetes.io/v1\rresults:\r- message: hi\r"
)]
#[case::anchors_from_items(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems:\n- a: &a hi\nresults:\n- message: *a\n"
)]
#[case::anchored_collections(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems:\n- a: &a {message: &b hi, c: [1, {d: e}]}\n- &c [*a]\nresults: *c\n"
)]
#[case::anchored_root(
    "&r\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n"
)]
#[case::tagged_root(
    "!!map\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n"
)]
#[case::alias_as_key(
    "items: [&k results]\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\n*k :\n- message: hi\n"
)]
#[case::merged_root(
    "x: &x {kind: ResourceList, results: [{message: no}]}\n<<: *x\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n"
)]
#[case::merged_results(
    "<<: {kind: ResourceList, results: [{message: hi}]}\napiVersion: config.kubernetes.io/v1\n"
)]
#[case::brackets_that_close_at_column_0(
    "kind: ResourceList\napiVersion: config.kubernetes.io/v1\nitems: [\n  {results: x}\n]\nresults: [\n  {message: hi}\n]\n"
)]
#[case::empty_documents_around(
    "---\n---\nkind: ResourceList\napiVersion: config.kubernetes.io/v1\nresults:\n- message: hi\n---\n"
)]
fn falls_back_to_parsing_the_whole_list(#[case] list: &str) {
    assert!(
        !uses_fast_path(list),
        "scanned without parsing the items: {list}"
    );
    assert_eq!(messages(&scan_both(list).unwrap()), ["hi"]);
}

#[rstest]
#[case("config.kubernetes.io/v1")]
#[case("config.kubernetes.io/v1alpha1")]
fn accepts_both_api_versions(#[case] version: &str) {
    let list = format!("apiVersion: {version}\nkind: ResourceList\n");
    assert_eq!(scan_both(&list).unwrap().api_version, version);
}

#[test]
fn ignores_a_byte_order_mark() {
    for list in [
        "{\"kind\":\"ResourceList\",\"apiVersion\":\"config.kubernetes.io/v1\"}",
        "kind: ResourceList\napiVersion: config.kubernetes.io/v1\n",
    ] {
        assert!(scan_both(&format!("\u{feff}{list}")).is_ok());
    }
}
