//! Names of slots and of the pods in them.
//!
//! A slot is a place for one pod of a function. The name of the slot is the label of the pod and
//! the name of the service. The name of a pod adds a suffix, so that it differs from the names of
//! all earlier pods in the slot and from the name of the slot, which the Go runner gives to warm
//! pods.

use runner_core::ImageReference;

use crate::{PodName, Uid};

/// Maximum length of a DNS label.
const LABEL: usize = 63;
const DIGEST_DIGITS: usize = 8;
/// Length of the suffix of a pod's name, as the API server generates it.
const SUFFIX: usize = 5;
/// The characters that the API server uses for suffixes; they form no words.
const SUFFIX_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the name of a slot: `<name>-<tag without dots>-<slot>-<first 8 digits of the digest>`.
///
/// The result is a DNS label that is also valid for a service (it starts with a letter), whatever
/// characters name and tag contain. If the label is too long, name and tag are cut; slot and digest
/// are kept whole. Different functions may get the same name; the pool then detects that the name
/// is taken and uses the next slot.
#[must_use]
pub fn slot_name(image: &ImageReference, slot: usize) -> PodName {
    let digest = image.digest().map_or("", |digest| digest.hex());
    let digest = digest.get(..DIGEST_DIGITS).unwrap_or(digest);
    let suffix = format!("-{slot}-{digest}");
    let mut stem = String::with_capacity(LABEL);
    let name = image.name();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        stem.push_str("fn-");
    }
    push_label(&mut stem, name);
    if let Some(tag) = image.tag_or_latest() {
        stem.push('-');
        push_label(&mut stem, &tag.replace('.', ""));
    }
    stem.truncate(LABEL.saturating_sub(suffix.len()));
    stem.push_str(&suffix);
    // Every image given to the pool has a digest; without one the label must not end with `-`.
    PodName::from(stem.trim_end_matches('-'))
}

/// Returns the name of the pod that follows `predecessor` in a slot, or of the first known pod
/// there.
///
/// Replicas that observed the same predecessor compute the same name, so the API server accepts
/// only one of their pods.
#[must_use]
pub fn pod_name(slot: &PodName, predecessor: Option<&Uid>) -> PodName {
    let uid = predecessor.map_or("", Uid::as_str);
    let mut hash = fnv(&[slot.as_str(), uid]);
    let mut name = slot.as_str().to_owned();
    name.push('-');
    for _ in 0..SUFFIX {
        let count = SUFFIX_CHARACTERS.len() as u64;
        let at = usize::try_from(hash % count).unwrap_or_default();
        name.push(char::from(SUFFIX_CHARACTERS[at]));
        hash /= count;
    }
    PodName::from(name)
}

/// Returns the FNV-1a hash of texts, each followed by a zero byte.
fn fnv(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn push_label(label: &mut String, text: &str) {
    label.extend(text.chars().map(|c| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9') => c,
        _ => '-',
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn image(name: &str) -> ImageReference {
        format!("{name}@{SHA}").parse().unwrap()
    }

    #[rstest]
    #[case("ghcr.io/x/set-namespace:v0.4.1", 1, "set-namespace-v041-1-01234567")]
    #[case("ghcr.io/x/apply_setters:v0.2.0", 12, "apply-setters-v020-12-01234567")]
    #[case("ghcr.io/x/fn:V1_beta.2", 1, "fn-v1-beta2-1-01234567")]
    #[case("ghcr.io/x/fn", 1, "fn-1-01234567")]
    #[case("ghcr.io/x/2to3.py:v1", 1, "fn-2to3-py-v1-1-01234567")]
    fn a_slot_is_named_after_its_function(
        #[case] name: &str,
        #[case] slot: usize,
        #[case] expected: &str,
    ) {
        assert_eq!(slot_name(&image(name), slot).as_str(), expected);
    }

    #[test]
    fn a_long_name_keeps_slot_and_digest() {
        let name = slot_name(
            &image(&format!("ghcr.io/x/{}:{}", "n".repeat(70), "t".repeat(90))),
            7,
        );
        assert!(
            name.as_str().ends_with("-7-01234567") && name.as_str().len() == LABEL,
            "{name}"
        );
    }

    #[test]
    fn names_each_pod_of_a_slot_differently() {
        let slot = slot_name(&image("ghcr.io/x/fn:v1"), 1);
        let first = pod_name(&slot, None);
        assert_eq!(first, pod_name(&slot, None));
        let suffix = first.as_str().strip_prefix("fn-v1-1-01234567-").unwrap();
        assert_eq!(suffix.len(), SUFFIX);
        let second = pod_name(&slot, Some(&"uid-1".into()));
        assert_ne!(second, first);
        assert_ne!(pod_name(&slot, Some(&"uid-2".into())), second);
        let other = slot_name(&image("ghcr.io/x/fn:v1"), 2);
        let last_part = |name: &PodName| name.as_str().rsplit('-').next().map(str::to_owned);
        assert_ne!(last_part(&pod_name(&other, None)), last_part(&first));
    }

    proptest! {
        #[test]
        fn a_slot_name_is_a_dns_label(
            name in "[a-z0-9]{1,30}([._-][a-z0-9]{1,30}){0,2}",
            tag in "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}",
            slot in 1_usize..100_000,
        ) {
            let name = slot_name(&image(&format!("ghcr.io/x/{name}:{tag}")), slot);
            let label = name.as_str();
            prop_assert!(label.len() <= LABEL);
            prop_assert!(label.starts_with(|c: char| c.is_ascii_lowercase()), "{}", label);
            prop_assert!(!label.ends_with('-'));
            prop_assert!(label.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-')));
        }
    }
}
