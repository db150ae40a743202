use proptest::prelude::*;

use super::*;
use crate::{annotations::without_location, package::File};
use runner_yaml::{Document, parse_one, resolve, same, to_json};

fn package(files: &[(&str, &str)]) -> Package {
    let files = files
        .iter()
        .map(|(path, text)| {
            let path = PackagePath::parse(path).unwrap();
            File::parse(path, (*text).to_owned()).unwrap()
        })
        .collect();
    Package::new(files, Vec::new())
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

fn merged(package: &Package, answer: &str) -> Plan {
    merge(package, answer.as_bytes()).unwrap()
}

#[test]
fn changes_nothing_for_the_identity_function() {
    let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
    let plan = merged(&package, &package.to_resource_list(None));
    assert_eq!(
        (plan.unchanged, plan.changed, plan.added, plan.removed),
        (3, 0, 0, 0)
    );
    assert!(plan.edits.is_empty());
}

#[test]
fn keeps_the_style_when_the_function_prints_json() {
    let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
    let list = package.to_resource_list(None);
    let json = to_json(&parse_one(&list).unwrap(), &list);
    let plan = merged(&package, &json);
    assert!(plan.edits.is_empty(), "{:?}", plan.edits);
    let plan = merged(&package, &json.replace("0644", "0600"));
    assert_eq!(plan.changed, 1);
    assert_eq!(
        plan.edits[0].new_content(),
        Some(&*WEB.replace("0644", "0600"))
    );
}

#[test]
fn uses_the_text_of_a_function_that_adds_comments() {
    let package = package(&[("a.yaml", WEB)]);
    let answer = package
        .to_resource_list(None)
        .replace("mode: 0644", "mode: 0644 # kpt-set: ${mode}");
    let plan = merged(&package, &answer);
    let new = plan.edits[0].new_content().unwrap();
    assert!(new.contains("mode: 0644 # kpt-set: ${mode}"), "{new}");
    assert!(new.starts_with("# The web server.\napiVersion"), "{new}");
    assert!(!new.contains("annotations"), "{new}");
}

#[test]
fn removes_only_the_resource_missing_from_the_answer() {
    let package = package(&[("a.yaml", WEB), ("b.yaml", TWO)]);
    let list = package.to_resource_list(None);
    let cut = list.find("# The web server").unwrap()..list.find("- apiVersion: v1").unwrap();
    let plan = merged(&package, &list.replace(&list[cut], ""));
    assert_eq!(plan.removed, 1);
    assert_eq!(plan.edits.len(), 1);
    assert_eq!(
        (plan.edits[0].path.as_str(), plan.edits[0].new_content()),
        ("a.yaml", None)
    );
}

#[test]
fn names_a_new_file_after_its_resource() {
    let package = package(&[("a.yaml", WEB)]);
    let answer = package.to_resource_list(None)
        + "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: system:new\n";
    let plan = merged(&package, &answer);
    assert_eq!(plan.added, 1);
    assert_eq!(plan.edits[0].path.as_str(), "configmap_system-new.yaml");
    assert_eq!(
        plan.edits[0].new_content(),
        Some("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: system:new\n")
    );
}

#[test]
fn keeps_the_comments_of_a_moved_resource() {
    let package = package(&[("a.yaml", WEB)]);
    let plan = merged(
        &package,
        &package.to_resource_list(None).replace("a.yaml", "b.yaml"),
    );
    let edits: Vec<_> = plan
        .edits
        .iter()
        .map(|edit| (edit.path.as_str(), edit.new_content()))
        .collect();
    assert_eq!(edits, [("a.yaml", None), ("b.yaml", Some(WEB))]);
}

#[test]
fn matches_an_item_without_a_path_by_name() {
    let package = package(&[("a.yaml", WEB)]);
    let list = package.to_resource_list(None);
    let bare: String = list
        .split_inclusive('\n')
        .filter(|line| !line.contains("config.kubernetes.io/path"))
        .collect();
    assert!(merged(&package, &bare).edits.is_empty());
}

#[test]
fn keeps_the_original_of_a_copied_resource() {
    let package = package(&[("a.yaml", WEB)]);
    let list = package.to_resource_list(None);
    let item = &list[list.find("- apiVersion").unwrap()..];
    let copy = item.replace("name: web", "name: copy");
    let plan = merged(&package, &list.replace(item, &format!("{copy}{item}")));
    assert_eq!((plan.unchanged, plan.added), (1, 1));
    let new = plan.edits[0].new_content().unwrap();
    assert!(new.starts_with(WEB), "{new}");
    assert!(new[WEB.len()..].starts_with("---\n"), "{new}");
}

#[test]
fn rejects_paths_that_are_not_resource_files_of_the_package() {
    let package = package(&[("a.yaml", WEB)]);
    for (path, message) in [
        ("../x.yaml", "outside the package"),
        ("/etc/x.yaml", "outside the package"),
        ("run.sh", "not named like a resource file"),
        ("yaml", "not named like a resource file"),
        ("b/yml", "not named like a resource file"),
    ] {
        let answer = package.to_resource_list(None).replace("a.yaml", path);
        let error = merge(&package, answer.as_bytes()).unwrap_err();
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
        let list = package.to_resource_list(None);
        let items = split(list.as_bytes()).unwrap();
        prop_assert_eq!(items.len(), package.resources().count());
        for (resource, item) in package.resources().zip(&items) {
            let sent = resolve(&without_location(&item.root, None)).unwrap();
            let own = resolve(&without_location(resource.root, None)).unwrap();
            prop_assert!(same(&sent, &own), "{list}");
        }
        let plan = merged(&package, &list);
        prop_assert!(plan.edits.is_empty(), "{list}\n{:?}", plan.edits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Arbitrary answers may be rejected but never cause a panic.
    #[test]
    fn never_panics_on_any_answer(
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, "[-:#{}\\[\\]&*!|>'\"?,é \n\t%a]{0,4}"), 1..6),
    ) {
        let package = package(&[("a.yaml", WEB), ("b/c.yaml", TWO)]);
        let mut answer: Vec<char> = package.to_resource_list(None).chars().collect();
        for (position, removed, inserted) in damages {
            let at = position.index(answer.len());
            let end = (at + removed).min(answer.len());
            answer.splice(at..end, inserted.chars());
        }
        let answer: String = answer.into_iter().collect();
        let _ = merge(&package, answer.as_bytes());
        let _ = Document::split(&answer);
    }
}
