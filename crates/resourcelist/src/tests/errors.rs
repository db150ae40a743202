//! Tests of the errors for inputs that are not a ResourceList.

use rstest::rstest;

use super::scan_both;
use crate::scan;

#[rstest]
#[case("", "expected a ResourceList, found nothing")]
#[case(" \n\n", "expected a ResourceList, found nothing")]
#[case("# only this\n---\n", "expected a ResourceList, found nothing")]
#[case("hello", "line 1: expected a ResourceList, found no mapping")]
#[case(
    "\n- kind: ResourceList\n",
    "line 2: expected a ResourceList, found no mapping"
)]
#[case("[1]", "line 1: expected a ResourceList, found no mapping")]
#[case("items: []\n", "expected a ResourceList, found no kind")]
#[case("{}", "expected a ResourceList, found no kind")]
#[case("kind: ResourceList\n", "expected a ResourceList, found no apiVersion")]
#[case(
    "items:\n- a\nkind: Deployment\n",
    "line 3: kind is \"Deployment\", expected ResourceList"
)]
#[case(
    "{\n\"kind\":\"List\"}",
    "line 2: kind is \"List\", expected ResourceList"
)]
#[case(
    "kind: [ResourceList]\n",
    "line 1: kind is a sequence, expected ResourceList"
)]
#[case(
    "a: 1\nkind:\napiVersion: v1\n",
    "line 2: kind is empty, expected ResourceList"
)]
#[case(
    "kind: ResourceList\napiVersion: v1\n",
    "line 2: apiVersion is \"v1\", expected config.kubernetes.io/v1 or config.kubernetes.io/v1alpha1"
)]
#[case(
    "kind: ResourceList\nitems: []\nkind: ResourceList\n",
    "line 3: kind is given twice"
)]
#[case(
    "results: []\nitems: []\n'results': []\n",
    "line 3: results is given twice"
)]
#[case(
    "{\"results\": [],\n\"results\": []}",
    "line 2: results is given twice"
)]
#[case(
    "kind: ResourceList\n---\nkind: ResourceList\n",
    "line 3: expected one ResourceList, found a second document"
)]
#[case(
    "kind: ResourceList\nresults: \"open\n",
    "line 2: while scanning a quoted scalar, found unexpected end of stream"
)]
fn reports_the_error_and_its_line(#[case] list: &str, #[case] error: &str) {
    assert_eq!(scan_both(list).unwrap_err().to_string(), error);
}

#[rstest]
#[case(b"a: b\nkind: \xff\n", "line 2: not text: no UTF-8")]
#[case(b"\"a\": b\n\nc: d\0\n", "line 3: not text: a NUL byte")]
#[case(b"\x7fELF\x02\x01\x01\0\0", "line 1: not text: a NUL byte")]
fn rejects_bytes_that_are_not_text(#[case] list: &[u8], #[case] error: &str) {
    assert_eq!(scan(list).unwrap_err().to_string(), error);
}

#[test]
fn shortens_a_long_invalid_value() {
    let list = format!("kind: {}\n", "x".repeat(1 << 20));
    assert!(scan_both(&list).unwrap_err().to_string().len() < 200);
}
