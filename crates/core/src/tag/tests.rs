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
fn selects_the_highest_version_in_a_range(#[case] text: &str, #[case] tag: Option<&str>) {
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
fn reads_a_single_word_as_a_tag_name(#[case] text: &str, #[case] tag: &str) {
    let constraint = constraint(text);
    assert_eq!(constraint.highest(TAGS), Some(tag));
    assert_eq!(constraint.exact(), Some(text.trim()));
    assert!(constraint.matches(tag));
}

#[test]
fn reads_a_short_version_as_a_range_if_no_tag_has_that_name() {
    assert_eq!(
        constraint("v0.4").highest(["v0.4.1", "v0.4.2", "v0.5.0"]),
        Some("v0.4.2")
    );
}

#[test]
fn prefers_versions_over_names() {
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
fn selects_pre_releases_only_if_the_constraint_names_one(#[case] text: &str, #[case] taken: bool) {
    assert_eq!(constraint(text).matches("v0.4.3-rc.1"), taken);
}

#[rstest]
#[case("~0.4.0-0")]
#[case("^0.4.0-0")]
#[case(">=0.4.0-0 <=0.4")]
#[case("0.4-0")]
fn excludes_pre_releases_of_the_next_version(#[case] text: &str) {
    assert!(!constraint(text).matches("v0.5.0-rc.1"));
    assert!(constraint(text).matches("v0.4.3-rc.1"));
}

#[test]
fn admits_pre_releases_per_alternative() {
    assert!(!constraint("^1 || =0.4.3-rc.1").matches("v1.3.0-beta"));
}

#[test]
fn fills_short_versions_with_zeros_and_prefers_full_ones() {
    assert!(constraint(">=0.4.0").matches("v0.4"));
    assert!(!constraint(">0.4.0").matches("v0.4"));
    assert!(!constraint("*").matches("latest"));
    assert!(!constraint("*").matches("v1.x"));
    assert_eq!(
        constraint("*").highest(["v2", "v1.3.0", "20240101"]),
        Some("v1.3.0")
    );
    assert_eq!(
        constraint("~0.3").highest(["v0.3", "latest", "v0.4.0"]),
        Some("v0.3")
    );
}

#[test]
fn selects_the_newest_of_tags_that_are_dates() {
    let tags = ["2024.01.15", "2024.02.01", "2023.12.31"];
    assert_eq!(constraint("*").highest(tags), Some("2024.02.01"));
    assert_eq!(constraint("2024.01.15").highest(tags), Some("2024.01.15"));
    assert_eq!(constraint("2024.1").highest(tags), Some("2024.01.15"));
}

#[test]
fn ignores_the_order_of_the_tags() {
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
fn treats_all_but_plain_names_as_ranges() {
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
#[case(">=1.x.main", "\">=1.x.main\" is not a version")]
#[case(">=1.2.3.4", "is not a version")]
#[case(">=1.2.3-rc.01", "is not a version")]
#[case(">18446744073709551615", "too large")]
#[case(">=99999999999999999999", "too large")]
#[case("- 1", "must stand between two versions")]
#[case("1 -", "must stand between two versions")]
#[case("foo/bar", "tag \"foo/bar\" may hold")]
#[case("-main", "tag \"-main\" may hold")]
fn names_the_malformed_part(#[case] text: &str, #[case] says: &str) {
    let error = TagConstraint::parse(text).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
    assert!(error.starts_with("malformed tag constraint"), "{error}");
}

#[test]
fn rejects_a_constraint_over_512_characters() {
    let error = TagConstraint::parse(&"1 || ".repeat(200))
        .unwrap_err()
        .to_string();
    assert!(error.contains("longer than 512"), "{error}");
}

/// Cases from Masterminds/semver, which Porch uses: constraint, admitted versions, refused
/// versions.
#[rstest]
#[case("=2.0", &["2.0.0", "2.0.1"], &["1.2.3", "2.1.0"])]
#[case("4.1", &["4.1.0"], &["4.2.0"])]
#[case("!=4.1.0", &["4.1.1"], &["4.1.0"])]
#[case("!=4.1", &["5.1.0", "4.0.0"], &["4.1.0", "4.1.1", "5.1.0-alpha.1"])]
#[case("!=4.x", &["5.1.0"], &["4.1.0"])]
#[case("<11", &["0.1.0"], &["11.1.0", "11.0.0"])]
#[case("<1.1", &["0.1.0"], &["1.1.0", "1.1.1"])]
#[case("<1.x", &["0.1.1"], &["1.1.1", "2.0.0"])]
#[case("<=11", &["1.2.3", "11.2.3"], &["12.2.3"])]
#[case("<=1.1", &["0.1.0", "1.1.0", "1.1.1"], &["1.2.3", "0.1.0-alpha"])]
#[case("<=1.1-a", &["0.1.0-alpha"], &["1.2.0"])]
#[case(">0", &["1"], &["0", "0.0.1-alpha"])]
#[case(">0-0", &["1.0.0-alpha"], &["0.0.1-alpha", "0.0.0-alpha"])]
#[case(">0.0.0-0", &["0.0.0-alpha"], &[])]
#[case(">1.2.3-alpha.1", &["1.2.3-alpha.2", "1.3.3-alpha.2"], &["1.2.3-alpha.1"])]
#[case(">11", &["12.0.0"], &["11.1.0"])]
#[case(">11.1", &["11.2.1"], &["11.1.0", "11.1.1"])]
#[case(">=11.1", &["11.1.2"], &["11.0.2"])]
#[case(">=0-0", &["0.0.1-alpha", "0.0.0-alpha"], &[])]
#[case(">=0.0.0-0", &["1.2.3", "3.4.5-beta.1"], &[])]
#[case("<0-z", &["0.0.0-alpha"], &["0.0.0"])]
#[case(">=0.4.0-0 <0.5.0", &["0.4.3-rc.1", "0.5.0-rc.1"], &["0.5.0"])]
#[case("*", &["1", "4.5.6"], &["1.2.3-alpha.1"])]
#[case("*-0", &["1.2.3-alpha.1", "1"], &[])]
#[case(">*", &["0.0.1"], &["0.0.0"])]
#[case("2.*", &["2.1.1"], &["1", "3.4.5"])]
#[case("2.1.*", &["2.1.1"], &["2.2.1"])]
#[case("~1.2.3", &["1.2.4", "1.2.3"], &["1.3.4", "1.2.2"])]
#[case("~1.2", &["1.2.4", "1.2"], &["1.3.4"])]
#[case("~1", &["1.2.4", "1.4"], &["2.3.4"])]
#[case("~1.x", &["1.3.5"], &["2.1.1", "1.3.5-beta"])]
#[case("~*", &["2.1.1"], &[])]
#[case("~0.0.0", &["0.0.0", "1.2.3"], &[])]
#[case("~1.1-alpha", &["1.1.1-beta", "1.1.1"], &["1.2.0-beta"])]
#[case("~1.2.3-beta.2", &["1.2.3-beta.4", "1.2.4-beta.2"], &["1.3.4-beta.2", "1.2.3-beta.1"])]
#[case("^1.2.3", &["1.8.9"], &["2.8.9", "1.2.1"])]
#[case("^1.2.0", &["1.2.1"], &["1.2.1-alpha.1", "2.2.1"])]
#[case("^1.2.0-alpha.2", &["1.2.1-alpha.0"], &["1.2.0-alpha.1"])]
#[case("^0.2.3", &["0.2.5"], &["0.5.6"])]
#[case("^0.2", &["0.2.5"], &["0.5.6"])]
#[case("^0.0.3", &["0.0.3"], &["0.0.4"])]
#[case("^0.0.0", &["0.0.0"], &["1.2.3", "0.0.1"])]
#[case("^0.0", &["0.0.3"], &["0.1.4", "1.0.4"])]
#[case("^0", &["0.2.3"], &["1.1.4"])]
#[case("1.1 - 2", &["1.1.1", "2.9.0"], &["3.0.0", "1.0.9"])]
#[case("1.5.0 - 4.5", &["3.7.0", "4.5.9"], &["4.6.0"])]
#[case("1.1-3", &["1.1.0-3"], &["4.3.2"])]
#[case(">=1.1, <2, !=1.2.3 || > 3", &["1.2.4", "4.1.2"], &["1.2.3", "3.0.0", "3.1.2"])]
#[case(">=1.1    < 2    != 1.2.3", &["1.1.0"], &["1.2.3", "2.0.0"])]
#[case("12.3.34 ~1.2.3", &[], &["12.3.34", "1.2.3"])]
#[case("^1", &["v01.2.3", "1.02.003"], &["v02.0.0"])]
#[case(">=2024.01", &["2024.01.15", "2024.1.0", "v2024.10"], &["2023.12.31", "1.0.0-01"])]
#[case("~2024.01.15", &["2024.01.15", "2024.1.16"], &["2024.01.14", "2024.02.01"])]
#[case("v01.2.3", &["1.2.3", "v01.02.03"], &["1.2.4"])]
#[case("1.x.3", &["1.0.0", "1.4.2"], &["2.0.3", "0.9.3"])]
#[case(">1.x.3", &["2.0.0"], &["1.4.4"])]
#[case("*.2.3", &["1.4.5"], &["1.2.3-rc.1"])]
fn matches_the_same_versions_as_porch(
    #[case] text: &str,
    #[case] admitted: &[&str],
    #[case] refused: &[&str],
) {
    let constraint = constraint(text);
    for version in admitted {
        assert!(constraint.matches(version), "{version}");
    }
    for version in refused {
        assert!(!constraint.matches(version), "{version}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "[v0-9.x*<>=!~^|, a-]{0,40}", tag in "v?[0-9]{1,2}\\.[0-9]\\.[0-9](-[a-z0-9]{1,3})?") {
        if let Ok(constraint) = TagConstraint::parse(&text) {
            prop_assert_eq!(constraint.highest([tag.as_str()]).is_some(), constraint.matches(&tag));
        }
    }

    /// The semver crate reads the same ranges of releases, except `~0.0.0`.
    #[test]
    fn matches_the_same_releases_as_the_semver_crate(
        operator in "(=|>|>=|<|<=|~|\\^)",
        range in "[0-3](\\.[0-3]){0,2}",
        tag in "[0-3]\\.[0-3]\\.[0-3]",
    ) {
        let text = format!("{operator}{range}");
        prop_assume!(text != "~0.0.0");
        let theirs = semver::VersionReq::parse(&text).unwrap();
        let expected = theirs.matches(&Version::parse(&tag).unwrap());
        prop_assert_eq!(constraint(&text).matches(&tag), expected, "{} {}", text, tag);
    }
}
