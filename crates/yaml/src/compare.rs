//! Compares values by meaning, independent of notation.

use crate::node::{Node, ScalarForm, Value};

/// Returns whether two values mean the same, whatever their notation and the order of their keys.
///
/// Scalars are read as in YAML 1.1, which Kubernetes and many functions use: `no` is `false` and
/// `0644` is `420`, so a program that prints the latter changed nothing. A program that follows
/// YAML 1.2 prints `"no"` and `644`, which are changes. Rare and ambiguous scalars (`y`, `1_000`,
/// dates) are equal only if they are spelled the same. Aliases are not followed; see
/// [`resolve`](crate::resolve()).
#[must_use]
pub fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar { .. }, Value::Scalar { .. }) => meaning(a) == meaning(b),
        (Value::Alias(a, _), Value::Alias(b, _)) => a == b,
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Mapping(ours), Value::Mapping(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|((key, value), (other_key, other_value))| {
                        // Order has no meaning, but is nearly always the same.
                        if same_key(key, other_key) {
                            return same(value, other_value);
                        }
                        theirs
                            .iter()
                            .any(|(other, theirs)| same_key(key, other) && same(value, theirs))
                    })
        }
        _ => false,
    }
}

/// Returns whether two keys are the same.
///
/// Every scalar key is text, even `on` and `1`.
#[must_use]
pub fn same_key(a: &Node, b: &Node) -> bool {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => a == b,
        _ => same(a, b),
    }
}

/// The typed value of a scalar.
#[derive(PartialEq, Eq)]
enum Meaning<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Text(&'a str),
    /// A non-integer number, a date, or a word that only some parsers read as one of these.
    Word(&'a str),
    Tagged(&'a str, &'a str),
}

/// Returns whether a value is null, with or without text.
pub(crate) fn is_null(node: &Node) -> bool {
    meaning(node) == Some(Meaning::Null)
}

fn meaning(node: &Node) -> Option<Meaning<'_>> {
    let Value::Scalar { text, form, tag } = &node.value else {
        return None;
    };
    let text = text.as_str();
    Some(match (tag.as_deref(), form) {
        (Some("tag:yaml.org,2002:str"), _) => Meaning::Text(text),
        (Some(tag), _) => Meaning::Tagged(tag, text),
        (None, ScalarForm::Quoted | ScalarForm::Block) => Meaning::Text(text),
        (None, ScalarForm::Plain) => match text {
            "" | "~" | "null" | "Null" | "NULL" => Meaning::Null,
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
                Meaning::Bool(true)
            }
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
                Meaning::Bool(false)
            }
            _ if is_text(text) => Meaning::Text(text),
            _ => integer(text).map_or(Meaning::Word(text), Meaning::Integer),
        },
    })
}

/// Parses an integer in the notations of YAML 1.1 and YAML 1.2.
fn integer(plain: &str) -> Option<i128> {
    let (radix, digits) = match plain.as_bytes() {
        [b'0', b'x', ..] => (16, &plain[2..]),
        [b'0', b'o', ..] => (8, &plain[2..]),
        [b'0', _, ..] => (8, &plain[1..]),
        _ => (10, plain),
    };
    // A sign after the prefix, as in `0x-1`, is not valid.
    let has_sign = digits.starts_with(['+', '-']) && radix != 10;
    i128::from_str_radix(digits, radix)
        .ok()
        .filter(|_| !has_sign)
}

/// Returns whether every parser reads a plain scalar as text.
pub(super) fn is_text(plain: &str) -> bool {
    const WORDS: [&str; 14] = [
        "", "~", "null", "true", "false", "y", "n", "yes", "no", "on", "off", "=", "<<", "-",
    ];
    if WORDS.iter().any(|word| plain.eq_ignore_ascii_case(word)) {
        return false;
    }
    let numeric_start = plain.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    // Addresses and versions have more than one point, numbers do not.
    let points = plain.bytes().filter(|byte| *byte == b'.').count();
    let numeric = plain
        .chars()
        .all(|c| c.is_ascii_hexdigit() || "xXoOiInNfFaA_+-.:,tTzZ ".contains(c));
    !numeric_start || !numeric || points > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_one;
    use rstest::rstest;

    fn mean_the_same(a: &str, b: &str) -> bool {
        same(&parse_one(a).unwrap(), &parse_one(b).unwrap())
    }

    #[rstest]
    #[case::quotes("a: 'x'", "a: x")]
    #[case::block_scalar("a: |\n  x\n", "a: \"x\\n\"")]
    #[case::order("{a: 1, b: 2}", "b: 2\na: 1")]
    #[case::null("a:", "a: null")]
    #[case::bool("a: True", "a: true")]
    #[case::address("a: 10.0.0.1", "a: '10.0.0.1'")]
    #[case::quantity("a: 100m", "a: '100m'")]
    #[case::tagged_text("a: !!str 1", "a: '1'")]
    #[case::keys_are_text("{on: 1}", "'on': 1")]
    #[case::bool_of_yaml_1_1_and_1_2("a: yes", "a: true")]
    #[case::octal("a: 0644", "a: 420")]
    #[case::octal_of_yaml_1_2("a: 0o644", "a: 420")]
    #[case::comments("a: 1 # x", "a: 1")]
    fn treats_equal_meanings_as_the_same(#[case] a: &str, #[case] b: &str) {
        assert!(mean_the_same(a, b));
    }

    #[rstest]
    #[case::number_and_text("a: 1", "a: '1'")]
    #[case::bool_of_yaml_1_1("a: yes", "a: 'yes'")]
    #[case::octal_taken_for_decimal("a: 0644", "a: 644")]
    #[case::no_octal("a: 0899", "a: 899")]
    #[case::exponent("a: 1e3", "a: '1e3'")]
    #[case::infinity("a: .inf", "a: '.inf'")]
    #[case::date("a: 2001-01-01", "a: '2001-01-01'")]
    #[case::sequence_order("[a, b]", "[b, a]")]
    #[case::missing_key("{a: 1, b: 2}", "{a: 1}")]
    fn treats_unequal_meanings_as_different(#[case] a: &str, #[case] b: &str) {
        assert!(!mean_the_same(a, b));
    }
}
