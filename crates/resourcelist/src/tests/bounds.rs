//! Tests of the limits, with malicious lists.

use std::time::{Duration, Instant};

use rstest::rstest;

use crate::collector::Collector;
use crate::{ScanError, scan, scan_whole, yaml};

const HEAD: &str = "kind: ResourceList\napiVersion: config.kubernetes.io/v1\n";

fn events(list: &str) -> (usize, Result<(), ScanError>) {
    let mut collector = Collector::default();
    let outcome = yaml::read(list, 1, &mut collector);
    (collector.events, outcome)
}

#[test]
fn does_not_expand_ignored_aliases() {
    let mut list = format!("{HEAD}items:\n- &a0 {{message: boom}}\n");
    for level in 1..40 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        list.push_str(&format!("- &a{level} [{below}]\n"));
    }
    list.push_str("results: [*a0, *a39, {message: *a39, other: *a39}]\nmore: *a39\n");
    let (events, outcome) = events(&list);
    assert_eq!(outcome, Ok(()));
    assert!(events < list.len(), "{events} events");
}

#[test]
fn stops_an_alias_bomb_within_the_allowance() {
    let mut list = format!("{HEAD}items:\n- &a0 {{message: boom}}\n");
    for level in 1..40 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        list.push_str(&format!("- &a{level} {{<<: [{below}]}}\n"));
    }
    list.push_str("results: [*a39]\n");
    let (events, outcome) = events(&list);
    assert_eq!(outcome, Err(ScanError::AliasExpansion { line: 44 }));
    assert!(events < (1 << 20) + 2 * list.len(), "{events} events");
}

#[test]
fn rejects_a_large_result_repeated_by_alias() {
    let message = "x".repeat(1 << 20);
    let repeats = "- *r\n".repeat(100_000);
    let list = format!("{HEAD}results:\n- &r {{message: {message}}}\n{repeats}");
    let (events, outcome) = events(&list);
    assert_eq!(outcome, Err(ScanError::AliasExpansion { line: 7 }));
    assert!(events < list.len());
}

#[test]
fn follows_a_long_chain_of_aliases_without_recursion() {
    let mut list = format!("{HEAD}items:\n- &a0 {{message: hi}}\n");
    for level in 1..50_000 {
        list.push_str(&format!("- &a{level} {{<<: *a{}}}\n", level - 1));
    }
    list.push_str("results: [*a49999]\n");
    assert_eq!(scan(list.as_bytes()).unwrap().results_text(), "[info]: hi");
}

#[test]
fn limits_the_recursion_of_merge_keys_in_json() {
    let deep = format!("{}1{}", "{\"<<\":".repeat(100_000), "}".repeat(100_000));
    let list = format!(
        "{{\"kind\":\"ResourceList\",\"apiVersion\":\"config.kubernetes.io/v1\",\"results\":[{deep}]}}"
    );
    assert!(scan(list.as_bytes()).is_err());
}

#[test]
fn rejects_too_much_anchored_content_only_if_used() {
    let many = "  - a\n".repeat(1 << 19);
    let list = format!("{HEAD}items: &all\n{many}");
    assert!(scan_whole(list.as_bytes()).is_ok());
    let used = format!("{list}results:\n- *all\n");
    assert_eq!(
        scan(used.as_bytes()).unwrap_err(),
        ScanError::TooComplex {
            detail: "anchored content"
        }
    );
}

#[test]
fn rejects_too_many_results() {
    let block = format!("{HEAD}results:\n{}", "- a\n".repeat(1 << 18));
    let json = format!("{{\"results\":[{}1]}}", "1,".repeat(1 << 18));
    for list in [block, json] {
        let error = scan(list.as_bytes()).unwrap_err();
        assert_eq!(error, ScanError::TooComplex { detail: "results" });
    }
}

#[rstest]
#[case::flow_sequences("x: ", "[", "")]
#[case::flow_mappings("x: ", "{a: ", "")]
#[case::closed_flow("x: ", "[", "]")]
#[case::block_sequences("x:\n", "- ", "")]
#[case::explicit_keys("x:\n ", "? ", "")]
#[case::flow_keys("x: ", "[[a]: ", "]")]
#[case::one_long_flow("x: [", "a, ", "")]
#[case::pairs("x: {", "a: b, ", "")]
#[case::collections_as_keys("x: [", "[a]: b, ", "]")]
#[case::words("x: ", "a ", "")]
#[case::words_in_flow("x: [[", "a\n ", "")]
#[case::blank_lines("x: |\n", " \n", "")]
#[case::folded("x: >\n", "  a\n\n", "")]
#[case::quoted("x: \"", "a\\\n ", "\"")]
#[case::single_quoted("x: '", "''", "'")]
#[case::comments("x: [", "#\n ", "]")]
#[case::anchors("x: [", "&a b,", "]")]
#[case::many_anchors("x: &a [", "&b c, *b, ", "]")]
#[case::tags("x: [", "!t b,", "]")]
#[case::documents("", "---\n", "")]
#[case::document_ends("", "...\n", "")]
#[case::directives("", "%x\n", "---\n")]
#[case::tag_directives("", "%TAG !a! b\n", "---\n")]
#[case::tabs("x: ", "\t", "")]
#[case::colons("x: [", ":,", "]")]
#[case::questions("x: [", "? ,", "]")]
#[case::quotes("", "\"", "")]
#[case::lone_returns("x: y", "\r", "")]
#[case::deeper_and_deeper("", "\n ", "")]
#[case::braces("", "{", "")]
#[case::json("{\"a\":", "[", "]")]
#[case::backslashes("{\"a\":\"", "\\", "")]
fn scans_in_linear_time(#[case] head: &str, #[case] unit: &str, #[case] tail: &str) {
    // Just below the limit on flow collections, so that all of it is parsed. Linear time is about
    // 1 s without optimization; quadratic work would be 10^10 steps.
    let times = (1 << 17) - 1;
    let list = format!("{head}{}{}", unit.repeat(times), tail.repeat(times));
    for read in [scan, scan_whole] {
        let start = Instant::now();
        let _ = read(list.as_bytes());
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

#[test]
fn accepts_deeply_nested_items_in_json() {
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let list = format!(
        "{{\"kind\":\"ResourceList\",\"items\":{deep},\"apiVersion\":\"config.kubernetes.io/v1\"}}"
    );
    assert!(scan(list.as_bytes()).is_ok());
}

#[test]
fn processes_events_in_proportion_to_the_list() {
    let item = "- &a {b: [c, *a], d: e}\n- [*a, *a]\n";
    let list = |count: usize| {
        format!(
            "{HEAD}items:\n{}results:\n- message: *a\n",
            item.repeat(count)
        )
    };
    let (few, many) = (events(&list(100)).0, events(&list(10_000)).0);
    assert!(many <= few * 100, "{few} events, then {many}");
}
