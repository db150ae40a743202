use proptest::prelude::*;

use super::*;
use crate::{
    list::{build, split},
    package::{Document, File},
    yaml::{render, single},
};

/// Returns a package in a directory that does not exist: these tests do not use the disk.
fn package(files: &[(&str, &str)]) -> Package {
    let files = files
        .iter()
        .map(|(path, text)| File {
            path: PackagePath::parse(path).unwrap(),
            text: (*text).to_owned(),
            documents: Document::split(text).unwrap(),
        })
        .collect();
    Package {
        root: "/no/such/package".into(),
        files,
        links: Vec::new(),
    }
}

const WEB: &str = "\
# The web server.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # keep
spec:
  mode: 0644

  enabled: yes
";
const TWO: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: 'one'
---
# nothing
---
values: true
---
apiVersion: v1
kind: Service
metadata: {name: two}
";

fn answered(package: &Package, answer: &str) -> Merge {
    merge(package, &split(answer.as_bytes()).unwrap()).unwrap()
}

#[test]
fn changes_nothing_for_the_identity_function() {
    let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
    let merge = answered(&package, &build(&package, None));
    assert_eq!(
        (merge.unchanged, merge.changed, merge.added, merge.removed),
        (3, 0, 0, 0)
    );
    assert!(merge.plan.edits.is_empty());
}

#[test]
fn keeps_the_style_when_the_function_prints_json() {
    let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
    let list = build(&package, None);
    let json = render::json(&single(&list).unwrap(), &list);
    let merge = answered(&package, &json);
    assert!(merge.plan.edits.is_empty(), "{:?}", merge.plan.edits);
    let merge = answered(&package, &json.replace("0644", "0600"));
    assert_eq!(merge.changed, 1);
    assert_eq!(
        merge.plan.edits[0].new.as_deref(),
        Some(&*WEB.replace("0644", "0600"))
    );
}

#[test]
fn uses_the_text_of_a_function_that_adds_comments() {
    let package = package(&[("a.yaml", WEB)]);
    let answer = build(&package, None).replace("mode: 0644", "mode: 0644 # kpt-set: ${mode}");
    let merge = answered(&package, &answer);
    let new = merge.plan.edits[0].new.as_deref().unwrap();
    assert!(new.contains("mode: 0644 # kpt-set: ${mode}"), "{new}");
    assert!(new.starts_with("# The web server.\napiVersion"), "{new}");
    assert!(!new.contains("annotations"), "{new}");
}

#[test]
fn removes_only_the_resource_missing_from_the_answer() {
    let package = package(&[("a.yaml", WEB), ("b.yaml", TWO)]);
    let list = build(&package, None);
    let cut = list.find("# The web server").unwrap()..list.find("- apiVersion: v1").unwrap();
    let merge = answered(&package, &list.replace(&list[cut], ""));
    assert_eq!(merge.removed, 1);
    assert_eq!(merge.plan.edits.len(), 1);
    assert_eq!(
        (merge.plan.edits[0].path.as_str(), &merge.plan.edits[0].new),
        ("a.yaml", &None)
    );
}

#[test]
fn names_a_new_file_after_its_resource() {
    let package = package(&[("a.yaml", WEB)]);
    let answer = build(&package, None)
        + "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: system:new\n";
    let merge = answered(&package, &answer);
    assert_eq!(merge.added, 1);
    assert_eq!(
        merge.plan.edits[0].path.as_str(),
        "configmap_system-new.yaml"
    );
    assert_eq!(
        merge.plan.edits[0].new.as_deref(),
        Some("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: system:new\n")
    );
}

#[test]
fn keeps_the_comments_of_a_moved_resource() {
    let package = package(&[("a.yaml", WEB)]);
    let merge = answered(&package, &build(&package, None).replace("a.yaml", "b.yaml"));
    let edits: Vec<_> = merge
        .plan
        .edits
        .iter()
        .map(|edit| (edit.path.as_str(), edit.new.as_deref()))
        .collect();
    assert_eq!(edits, [("a.yaml", None), ("b.yaml", Some(WEB))]);
}

#[test]
fn matches_an_item_without_a_path_by_name() {
    let package = package(&[("a.yaml", WEB)]);
    let list = build(&package, None);
    let bare: String = list
        .split_inclusive('\n')
        .filter(|line| !line.contains("config.kubernetes.io/path"))
        .collect();
    assert!(answered(&package, &bare).plan.edits.is_empty());
}

#[test]
fn a_copy_does_not_replace_its_original() {
    let package = package(&[("a.yaml", WEB)]);
    let list = build(&package, None);
    let item = &list[list.find("- apiVersion").unwrap()..];
    let copy = item.replace("name: web", "name: copy");
    let merge = answered(&package, &list.replace(item, &format!("{copy}{item}")));
    assert_eq!((merge.unchanged, merge.added), (1, 1));
    let new = merge.plan.edits[0].new.as_deref().unwrap();
    assert!(new.starts_with(WEB), "{new}");
    assert!(new[WEB.len()..].starts_with("---\n"), "{new}");
}

#[test]
fn rejects_paths_outside_the_package() {
    let package = package(&[("a.yaml", WEB)]);
    for (path, message) in [
        ("../x.yaml", "outside the package"),
        ("/etc/x.yaml", "outside the package"),
        ("run.sh", "not named like a resource file"),
    ] {
        let answer = build(&package, None).replace("a.yaml", path);
        let error = merge(&package, &split(answer.as_bytes()).unwrap()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

fn resource() -> impl Strategy<Value = String> {
    let extra = prop_oneof![
        Just("# a comment\n"),
        Just("\n"),
        Just("a: yes # why\n"),
        Just("b: |\n  # text\n\n  é\n"),
        Just("c: {x: [1, 'y'], z: }\n"),
        Just("d:\n- 1\n-\n  e: 0644\n"),
        Just("f: >-\n   folded\n   text\n"),
        Just("g: \"multi\n  line\"\n"),
        Just("h: &h\n  i: 1\nj: *h\n"),
        Just("k: !!str 1\n"),
        Just("\"l\" : ''\n"),
        Just("m:\n    - n:  1\n      o: 2\n    - p\n"),
    ];
    let metadata = prop_oneof![
        Just(""),
        Just("metadata:\n"),
        Just("metadata: {}\n"),
        Just("metadata: {name: x} # c\n"),
        Just("metadata:\n  # name\n  name: x\n"),
        Just("metadata:\n    annotations:\n        q: r\n    name: x\n"),
        Just("metadata:\n  annotations: {s: t}\n"),
        Just("metadata:\n  name: x\n  annotations:\n"),
    ];
    (metadata, prop::collection::vec(extra, 0..5), any::<bool>()).prop_map(
        |(metadata, extras, first)| {
            let mut seen = std::collections::HashSet::new();
            let extras: String = extras
                .into_iter()
                .filter(|extra| seen.insert(*extra))
                .collect();
            if first {
                format!("{extras}apiVersion: v1\nkind: X\n{metadata}")
            } else {
                format!("apiVersion: v1\nkind: X\n{metadata}{extras}")
            }
        },
    )
}

proptest! {
    /// Sending any package and merging it back unchanged keeps every byte.
    #[test]
    fn keeps_every_byte_for_the_identity_function(
        resources in prop::collection::vec(resource(), 1..4), crlf: bool, last_newline: bool,
    ) {
        let mut text = resources.join("---\n");
        if !last_newline {
            text = text.trim_end().to_owned();
        }
        if crlf {
            text = text.replace('\n', "\r\n");
        }
        prop_assume!(Document::split(&text).is_ok());
        let package = package(&[("a.yaml", &text)]);
        let list = build(&package, None);
        let items = split(list.as_bytes()).unwrap();
        prop_assert_eq!(items.len(), package.resources().count());
        for ((_, _, document), item) in package.resources().zip(&items) {
            let sent = crate::yaml::resolve(&without(&item.root)).unwrap();
            let own = crate::yaml::resolve(&without(document.root.as_ref().unwrap())).unwrap();
            prop_assert!(crate::yaml::same(&sent, &own), "{list}");
        }
        let merge = merge(&package, &items).unwrap();
        prop_assert!(merge.plan.edits.is_empty(), "{list}\n{:?}", merge.plan.edits);
    }
}

fn without(root: &Node) -> Node {
    crate::list::annotations::without_place(root, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Arbitrary answers may be rejected but never cause a panic.
    #[test]
    fn never_panics_on_any_answer(
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, "[-:#{}\\[\\]&*!|>'\"?,é \n\t%a]{0,4}"), 1..6),
    ) {
        let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
        let mut answer: Vec<char> = build(&package, None).chars().collect();
        for (place, cut, put) in wounds {
            let at = place.index(answer.len());
            let end = (at + cut).min(answer.len());
            answer.splice(at..end, put.chars());
        }
        let answer: String = answer.into_iter().collect();
        if let Ok(items) = split(answer.as_bytes()) {
            let _ = merge(&package, &items);
        }
        let _ = Document::split(&answer);
    }
}
