//! What holds for every list.

use proptest::prelude::*;

use super::generate::{layout, list};
use super::{is_skimmed, scan_both};
use crate::{scan, scan_whole};

/// Pieces that YAML gives a meaning, to be put together without any.
fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "kind: ResourceList\n",
        "apiVersion: config.kubernetes.io/v1\n",
        "results:",
        "items:",
        "\n",
        "- ",
        "-",
        "message: ",
        "  ",
        " ",
        "\t",
        "a",
        "b: c\n",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ": ",
        "? ",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "|2\n",
        "#",
        " # c\n",
        "---\n",
        "--- ",
        "...\n",
        "%YAML 1.2\n",
        "&a ",
        "*a",
        "*a ",
        "&b\n",
        "!t ",
        "!!str ",
        "<<: ",
        "\r",
        "\r\n",
        "\u{feff}",
        "\0",
        "é",
        "\\",
        "\\\n",
        "null",
        "~",
        "\"kind\": ",
        "\"results\": [",
        "severity: error\n",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(envelope) = scan_whole(&bytes) {
            prop_assert_eq!(scan(&bytes), Ok(envelope));
        }
        let _ = scan(&bytes);
    }

    #[test]
    fn any_soup_of_yaml_is_answered_alike_both_ways(soup in soup()) {
        let _ = scan_both(&soup);
        let headed = format!("kind: ResourceList\napiVersion: config.kubernetes.io/v1\n{soup}");
        let _ = scan_both(&headed);
    }

    #[test]
    fn the_envelope_of_a_block_list_is_found_whatever_it_holds(list in list(), layout in layout()) {
        let text = list.yaml(&layout);
        prop_assert!(is_skimmed(&text), "not stepped through:\n{}", text);
        prop_assert_eq!(scan(text.as_bytes()), Ok(list.envelope.clone()), "{}", text);
        prop_assert_eq!(scan_whole(text.as_bytes()), Ok(list.envelope), "{}", text);
    }

    #[test]
    fn the_envelope_of_a_json_list_is_found_whatever_it_holds(list in list()) {
        let text = list.json();
        prop_assert!(is_skimmed(&text), "not stepped through:\n{}", text);
        prop_assert_eq!(scan(text.as_bytes()), Ok(list.envelope.clone()), "{}", text);
        prop_assert_eq!(scan_whole(text.as_bytes()), Ok(list.envelope), "{}", text);
    }
}
