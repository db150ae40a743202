//! Properties that hold for every list.

use proptest::prelude::*;

use super::generate::{layout, list};
use super::{scan_both, uses_fast_path};
use crate::{scan, scan_whole};

/// Generates a random concatenation of pieces with a meaning in YAML.
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
    fn accepts_any_bytes_without_panicking(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(envelope) = scan_whole(&bytes) {
            prop_assert_eq!(scan(&bytes), Ok(envelope));
        }
        let _ = scan(&bytes);
    }

    #[test]
    fn gives_the_same_answer_as_scan_whole_for_random_yaml(soup in soup()) {
        let _ = scan_both(&soup);
        let headed = format!("kind: ResourceList\napiVersion: config.kubernetes.io/v1\n{soup}");
        let _ = scan_both(&headed);
    }

    #[test]
    fn finds_the_envelope_of_any_block_list(list in list(), layout in layout()) {
        let text = list.yaml(&layout);
        prop_assert!(uses_fast_path(&text), "parsed as a whole:\n{}", text);
        prop_assert_eq!(scan(text.as_bytes()), Ok(list.envelope.clone()), "{}", text);
        prop_assert_eq!(scan_whole(text.as_bytes()), Ok(list.envelope), "{}", text);
    }

    #[test]
    fn finds_the_envelope_of_any_json_list(list in list()) {
        let text = list.json();
        prop_assert!(uses_fast_path(&text), "parsed as a whole:\n{}", text);
        prop_assert_eq!(scan(text.as_bytes()), Ok(list.envelope.clone()), "{}", text);
        prop_assert_eq!(scan_whole(text.as_bytes()), Ok(list.envelope), "{}", text);
    }
}
