use proptest::prelude::*;
use rstest::rstest;

use super::*;

const TAGS: [&str; 14] = [
    "latest",
    "v0.3.9",
    "v0.4.0",
    "v0.4.1",
    "0.4.2",
    "v0.4",
    "v0.4.3-rc.1",
    "v0.5.0-rc.1",
    "v0.5.0",
    "v1.0.0",
    "v1.2.0",
    "v1.10.0",
    "v2.0.0",
    "main",
];

fn constraint(text: &str) -> TagConstraint {
    TagConstraint::parse(text).unwrap()
}

#[rstest]
#[case(">= 0.4.0 < 0.5.0", Some("0.4.2"))]
#[case(">=0.4.0,<0.5.0", Some("0.4.2"))]
#[case(">=0.4.0<0.5.0", Some("0.4.2"))]
#[case(">= v0.4.0 , < v0.4.2", Some("v0.4.1"))]
#[case("=> 0.4.0 =< 0.4.1", Some("v0.4.1"))]
#[case("~0.4", Some("0.4.2"))]
#[case("~0.4.1", Some("0.4.2"))]
#[case("~> 1", Some("v1.10.0"))]
#[case("^1", Some("v1.10.0"))]
#[case("^0.4", Some("0.4.2"))]
#[case("^0.4.1", Some("0.4.2"))]
#[case("^0", Some("v0.5.0"))]
#[case("v0.4.x", Some("0.4.2"))]
#[case("0.4.*", Some("0.4.2"))]
#[case("0.X", Some("v0.5.0"))]
#[case("*", Some("v2.0.0"))]
#[case(">1", Some("v2.0.0"))]
#[case(">1 <2", None)]
#[case("<=1", Some("v1.10.0"))]
#[case("<1", Some("v0.5.0"))]
#[case("<=1.2", Some("v1.2.0"))]
#[case(">1.2 <2", Some("v1.10.0"))]
#[case("=0.4", Some("0.4.2"))]
#[case("= 0.4.1", Some("v0.4.1"))]
#[case("^1 != 1.10.0", Some("v1.2.0"))]
#[case("^1 != 1.10", Some("v1.2.0"))]
#[case("0.3 - 0.4.1", Some("v0.4.1"))]
#[case("0.3.0 - 0.4", Some("0.4.2"))]
#[case("^3 || ~0.4.0", Some("0.4.2"))]
#[case("~0.4 || ^1", Some("v1.10.0"))]
#[case("^3", None)]
#[case("^0.0", None)]
fn a_range_selects_the_highest_version_it_admits(#[case] text: &str, #[case] tag: Option<&str>) {
    assert_eq!(constraint(text).highest(TAGS), tag);
}

#[rstest]
#[case("latest", "latest")]
#[case("main", "main")]
#[case("v0.4", "v0.4")]
#[case("v0.4.1", "v0.4.1")]
#[case("0.4.1", "v0.4.1")]
#[case("v0.4.2", "0.4.2")]
#[case("v0.5.0-rc.1", "v0.5.0-rc.1")]
#[case("  main  ", "main")]
fn a_lone_word_names_a_tag(#[case] text: &str, #[case] tag: &str) {
    let constraint = constraint(text);
    assert_eq!(constraint.highest(TAGS), Some(tag));
    assert_eq!(constraint.exact(), Some(text.trim()));
    assert!(constraint.matches(tag));
}

#[test]
fn a_short_version_means_its_patches_where_no_tag_has_that_name() {
    assert_eq!(
        constraint("v0.4").highest(["v0.4.1", "v0.4.2", "v0.5.0"]),
        Some("v0.4.2")
    );
}

#[test]
fn versions_win_over_names() {
    assert_eq!(constraint("main || ^1").highest(TAGS), Some("v1.10.0"));
    assert_eq!(constraint("main || ^3").highest(TAGS), Some("main"));
}

#[rstest]
#[case("~0.4", false)]
#[case(">=0.4.0-0 <0.5.0", true)]
#[case("~0.4.3-rc", true)]
#[case("^1 || ~0.4.3-rc.0", true)]
#[case("*", false)]
#[case("0.4.3-rc.1", true)]
fn pre_releases_are_taken_only_when_asked_for(#[case] text: &str, #[case] taken: bool) {
    assert_eq!(constraint(text).matches("v0.4.3-rc.1"), taken);
}

#[rstest]
#[case(">=0.4.0-0 <0.5.0")]
#[case("~0.4.0-0")]
#[case("^0.4.0-0")]
#[case(">=0.4.0-0 <=0.4")]
fn an_upper_bound_keeps_its_own_pre_releases_out(#[case] text: &str) {
    assert!(!constraint(text).matches("v0.5.0-rc.1"));
    assert!(constraint(">=0.4.0 <0.5.0-rc.2").matches("v0.5.0-rc.1"));
}

#[test]
fn a_pre_release_in_one_alternative_does_not_open_the_others() {
    assert!(!constraint("^1 || =0.4.3-rc.1").matches("v1.3.0-beta"));
}

#[test]
fn moving_tags_are_not_versions() {
    assert!(!constraint(">=0.4.0").matches("v0.4"));
    assert!(!constraint("*").matches("latest"));
    assert!(!constraint("^1").matches("v01.2.3"));
}

#[test]
fn the_order_of_the_tags_does_not_matter() {
    assert_eq!(
        constraint("^1").highest(["1.0.0", "v1.0.0"]),
        Some("v1.0.0")
    );
    assert_eq!(
        constraint("^1").highest(["v1.0.0", "1.0.0"]),
        Some("v1.0.0")
    );
    assert_eq!(
        constraint("1.0.0").highest(["v1.0.0", "1.0.0"]),
        Some("1.0.0")
    );
}

#[test]
fn only_a_plain_name_is_no_range() {
    assert!(!constraint("main").is_range());
    assert!(constraint("v0.4.1").is_range());
    assert_eq!(constraint("v0.4.x").exact(), None);
    assert_eq!(constraint("a || b").exact(), None);
}

#[rstest]
#[case("", "it is empty")]
#[case("   ", "it is empty")]
#[case(">=", "no version follows \">=\"")]
#[case(">= 0.4.0 <", "no version follows \"<\"")]
#[case(">= main", "\">=main\" is not a version")]
#[case(">= 0.4.0 main", "\"main\" is not a version")]
#[case("=! 1", "\"=!\" is not an operator")]
#[case(">>1", "\">>\" is not an operator")]
#[case("1 ||", "one side of a \"||\" is empty")]
#[case("|| 1", "one side of a \"||\" is empty")]
#[case("1,,2", "between two commas")]
#[case("1,", "between two commas")]
#[case(">=1.x.3", "\">=1.x.3\" has \"3\" after a wildcard")]
#[case(">=1.2.3.4", "is not a version")]
#[case(">=1.02", "has a leading zero in \"02\"")]
#[case(">18446744073709551615", "too large")]
#[case(">=99999999999999999999", "too large")]
#[case(">*", "admits no version")]
#[case("- 1", "must stand between two versions")]
#[case("1 -", "must stand between two versions")]
#[case("foo/bar", "tag \"foo/bar\" may hold")]
#[case("-main", "tag \"-main\" may hold")]
fn a_malformed_part_is_named(#[case] text: &str, #[case] says: &str) {
    let error = TagConstraint::parse(text).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
    assert!(error.starts_with("malformed tag constraint"), "{error}");
}

#[test]
fn a_constraint_has_a_greatest_length() {
    let error = TagConstraint::parse(&"1 || ".repeat(200))
        .unwrap_err()
        .to_string();
    assert!(error.contains("longer than 512"), "{error}");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "[v0-9.x*<>=!~^|, a-]{0,40}", tag in "v?[0-9]{1,2}\\.[0-9]\\.[0-9](-[a-z0-9]{1,3})?") {
        if let Ok(constraint) = TagConstraint::parse(&text) {
            prop_assert_eq!(constraint.highest([tag.as_str()]).is_some(), constraint.matches(&tag));
        }
    }

    /// The semver crate reads the same ranges of releases as we do.
    #[test]
    fn releases_are_judged_as_the_semver_crate_does(
        operator in "(=|>|>=|<|<=|~|\\^)",
        range in "[0-3](\\.[0-3]){0,2}",
        tag in "[0-3]\\.[0-3]\\.[0-3]",
    ) {
        let text = format!("{operator}{range}");
        let theirs = semver::VersionReq::parse(&text).unwrap();
        let expected = theirs.matches(&Version::parse(&tag).unwrap());
        prop_assert_eq!(constraint(&text).matches(&tag), expected, "{} {}", text, tag);
    }
}
