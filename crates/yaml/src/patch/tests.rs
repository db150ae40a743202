use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn patched(text: &str, target: &str) -> Option<String> {
    patch(
        text,
        &parse_one(text).unwrap(),
        &parse_one(target).unwrap(),
        target,
    )
}

const DEPLOYMENT: &str = "\
# The web server.
kind: Deployment
metadata:
  name: web   # do not rename

  labels: {app: web}
spec:
  # Three for the weekend.
  replicas: 3
  # Who serves.
  containers:
    - name: nginx  # the server
      image: 'nginx:1'
      args:
        - \"-c\"
    # The helper.
    - name: helper
      image: helper:1
  mode: 0644
";

#[rstest]
#[case::a_scalar("replicas: 3", "replicas: 5")]
#[case::a_quoted_scalar("'nginx:1'", "nginx:2")]
#[case::a_mapping_in_braces("{app: web}", "{app: web, tier: front}")]
#[case::a_removed_key("  mode: 0644\n", "")]
#[case::an_added_key("  mode: 0644\n", "  mode: 0644\n  paused: true\n")]
#[case::an_added_tree(
    "  mode: 0644\n",
    "  mode: 0644\n  strategy:\n    type: Recreate\n    list:\n      - a\n      - b: 1\n        c: 2\n"
)]
#[case::an_added_item("        - \"-c\"\n", "        - \"-c\"\n        - \"-v\"\n")]
#[case::a_first_item("        - \"-c\"\n", "        - first\n        - \"-c\"\n")]
#[case::a_removed_item("    # The helper.\n    - name: helper\n      image: helper:1\n", "")]
#[case::a_removed_first_key(
    "    - name: nginx  # the server\n      image: 'nginx:1'\n",
    "    - image: 'nginx:1'\n"
)]
#[case::a_removed_key_and_its_comment(
    "  # Who serves.\n  containers:\n    - name: nginx  # the server\n      image: 'nginx:1'\n      args:\n        - \"-c\"\n    # The helper.\n    - name: helper\n      image: helper:1\n",
    ""
)]
fn edits_only_the_changed_text(#[case] old: &str, #[case] new: &str) {
    assert!(DEPLOYMENT.contains(old));
    let wanted = DEPLOYMENT.replace(old, new);
    // The function returns the wanted content as JSON, without comments and with its own quotes.
    let root = parse_one(&wanted).unwrap();
    let printed = Renderer {
        json: true,
        ..Renderer::new(&wanted)
    }
    .flow(&root);
    let result = patched(DEPLOYMENT, &printed).unwrap();
    let without_quotes = |text: &str| text.replace(['"', '\''], "");
    assert_eq!(without_quotes(&result), without_quotes(&wanted));
}

#[test]
fn keeps_the_comment_of_a_key_without_a_value() {
    assert_eq!(
        patched("a: # why\nb: 1\n", "a: x\nb: 1").unwrap(),
        "a: x # why\nb: 1\n"
    );
    assert_eq!(
        patched("a: # why\nb: 1\n", "a: {c: 1}\nb: 1").unwrap(),
        "a: # why\n  c: 1\nb: 1\n"
    );
}

#[test]
fn replaces_scalars_by_collections_and_collections_by_scalars() {
    assert_eq!(
        patched("a: 1\nb: 2\n", "a: {c: [x]}\nb: 2").unwrap(),
        "a:\n  c:\n  - x\nb: 2\n"
    );
    assert_eq!(
        patched("a:\n  c: 1\n  d: 2\nb: 2\n", "a: 1\nb: 2").unwrap(),
        "a: 1\nb: 2\n"
    );
}

#[test]
fn replaces_whole_block_scalars() {
    let text = "data:\n  script: |\n    one\n    two\n\n  other: x\n";
    let result = patched(
        text,
        r#"{"data": {"script": "one\nthree\n", "other": "x"}}"#,
    )
    .unwrap();
    assert_eq!(
        result,
        "data:\n  script: |\n    one\n    three\n\n  other: x\n"
    );
}

#[test]
fn keeps_json_valid() {
    let text = "{\n  \"a\": 1,\n  \"m\": {}\n}\n";
    let result = patched(text, "a: 2\nm:\n  x: 'y'\nn: z\n").unwrap();
    assert_eq!(
        result,
        "{\n  \"a\": 2,\n  \"m\": {\"x\": \"y\"},\n  \"n\": \"z\"\n}\n"
    );
    assert_eq!(
        patched("{\"a\": 1, \"b\": 2}", "b: 2").unwrap(),
        "{\"b\": 2}"
    );
    assert_eq!(
        patched("{\"a\": 1, \"b\": 2}", "a: 1").unwrap(),
        "{\"a\": 1}"
    );
}

#[test]
fn keeps_aliases_whose_meaning_is_unchanged() {
    let text = "a: &x 1\nb: *x\nc: 1\n";
    assert_eq!(
        patched(text, "a: &x 1\nb: *x\nc: 2\n").unwrap(),
        "a: &x 1\nb: *x\nc: 2\n"
    );
    assert_eq!(
        patched("a: &x 1\nb: *x\n", "a: 2\nb: 1\n").unwrap(),
        "a: 2\nb: 1\n"
    );
    let moved = patched("a: &x 1\nb: *x\n", "a: 2\nb: &x 1\nc: *x").unwrap();
    assert_eq!(moved, "a: 2\nb: &x 1\nc: *x\n");
}

#[test]
fn keeps_line_endings() {
    let text = "a: 1\r\nb: 2\r\n";
    let result = patched(text, "a: 1\nb: 3\nc: {d: 4}\n").unwrap();
    assert_eq!(result, "a: 1\r\nb: 3\r\nc:\r\n  d: 4\r\n");
}

#[test]
fn accepts_a_text_without_a_trailing_newline() {
    assert_eq!(patched("a: 1", "a: 1\nb: 2").unwrap(), "a: 1\nb: 2");
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i16>().prop_map(serde_json::Value::from),
        "[a-z#:\\-\" '\n]{0,6}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-d]", value(), 1..5)
        .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()).to_string())
}

proptest! {
    /// Block YAML patched towards any other document means that document, or no patch is returned.
    #[test]
    fn produces_the_meaning_of_the_target(from in document(), to in document(), indent_sequences: bool) {
        let text = Renderer { indent_sequences, ..Renderer::new(&from) }.document(&parse_one(&from).unwrap());
        if let Some(result) = patched(&text, &to) {
            prop_assert!(same(&parse_one(&result).unwrap(), &parse_one(&to).unwrap()));
        }
    }

    /// Rendering keeps the meaning, and a patch towards the same meaning changes no byte.
    #[test]
    fn leaves_unchanged_documents_untouched(from in document(), indent_sequences: bool) {
        let text = Renderer { indent_sequences, ..Renderer::new(&from) }.document(&parse_one(&from).unwrap());
        prop_assert!(same(&parse_one(&text).unwrap(), &parse_one(&from).unwrap()));
        prop_assert_eq!(patched(&text, &from), Some(text));
    }
}
