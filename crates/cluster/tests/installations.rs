//! Tests with the `FunctionConfig` objects of existing Porch installations.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use kube::api::DynamicObject;
use runner_cluster::declaration;
use runner_config::Problem;
use serde_json::Value;

/// Objects as Porch ships them, in both generations of tags.
const OBJECTS: &str = r#"
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata: {name: exact, namespace: porch-fn-system}
spec:
  image: exact
  prefixes: ["", ghcr.io/example/catalog]
  podExecutor: {tags: [v0.1.4, v0.1], timeToLive: 30m}
  binaryExecutor: {tags: [v0.2.0], path: exact}
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: FunctionConfig
metadata: {name: ranges, namespace: porch-fn-system}
spec:
  image: ranges
  podExecutor: {tags: ["~0.1", "*", ""], timeToLive: 30m}
  binaryExecutor: {tags: ["~0.1 != v0.1.4"], path: ranges}
  goExecutor: {id: ranges, tags: [v0.1.5]}
"#;

/// Returns a file of the shipped installations, if their directory beside the checkout exists.
fn shipped(name: &str) -> Option<String> {
    let porch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/porch");
    let text = fs::read_to_string(porch.join(name)).ok();
    if text.is_none() {
        eprintln!("skipped: {name} of a shipped installation is not here");
    }
    text
}

fn problems_of_objects(text: &str) -> (usize, Vec<Problem>) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let objects: Vec<DynamicObject> = documents
        .into_iter()
        .filter(|document| !document.is_null())
        .map(|document| serde_json::from_value(document).unwrap())
        .collect();
    let problems = objects
        .iter()
        .flat_map(|object| declaration(object).problems);
    (objects.len(), problems.collect())
}

#[test]
fn reads_objects_of_both_generations_without_problems() {
    assert_eq!(problems_of_objects(OBJECTS), (2, Vec::new()));
    for (name, number) in [
        ("2026-04/functionconfigs.yaml", 19),
        ("current/functionconfigs.yaml", 18),
    ] {
        if let Some(text) = shipped(name) {
            assert_eq!(problems_of_objects(&text), (number, Vec::new()), "{name}");
        }
    }
}
