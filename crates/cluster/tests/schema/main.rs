//! Tests of the CRDs: they accept the objects that earlier CRDs accepted, and no others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;

use runner_cluster::objects::crd_documents;
use serde::Deserialize;
use serde_json::Value;
use validator::{admit, check_structure};

mod validator;

#[derive(Deserialize)]
struct Case {
    title: String,
    kind: String,
    /// Part of the expected error; `None` if the object is accepted.
    #[serde(default)]
    refused: Option<String>,
    object: Value,
}

/// Returns the schemas by kind.
fn schemas() -> BTreeMap<String, Value> {
    crd_documents()
        .into_iter()
        .map(|(_, document)| {
            let definition: Value = serde_saphyr::from_str(&document).unwrap();
            let version = &definition["spec"]["versions"][0];
            assert_eq!(version["name"], "v1alpha1");
            let kind = definition["spec"]["names"]["kind"]
                .as_str()
                .unwrap()
                .to_owned();
            (kind, version["schema"]["openAPIV3Schema"].clone())
        })
        .collect()
}

#[test]
fn accepts_and_refuses_the_same_objects_as_earlier_crds() {
    let schemas = schemas();
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    let mut wrong = Vec::new();
    for Case {
        title,
        kind,
        refused,
        mut object,
    } in cases
    {
        let complaints = admit(&mut object, &schemas[&kind]).join("; ");
        let as_expected = match &refused {
            Some(says) => complaints.contains(says.as_str()),
            None => complaints.is_empty(),
        };
        if !as_expected {
            wrong.push(format!("{title}: expected {refused:?}, got {complaints:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn matches_the_generated_files_in_deploy() {
    for (name, text) in crd_documents() {
        let file = format!("{}/../../deploy/crds/{name}", env!("CARGO_MANIFEST_DIR"));
        let found = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            found == text,
            "deploy/crds/{name} is not current: run `cargo xtask crds`"
        );
    }
}

#[test]
fn schemas_are_structural() {
    for (kind, schema) in schemas() {
        let flaws = check_structure(&schema);
        assert!(flaws.is_empty(), "{kind}: {flaws:#?}");
    }
}

#[test]
fn deserializes_every_accepted_object() {
    let schemas = schemas();
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    for Case {
        title,
        kind,
        mut object,
        ..
    } in cases.into_iter().filter(|case| case.refused.is_none())
    {
        admit(&mut object, &schemas[&kind]);
        let understood = match kind.as_str() {
            // An object without a spec is accepted; the error is in its status.
            "FunctionConfig" if object.get("spec").is_none() => continue,
            "FunctionConfig" => {
                serde_json::from_value::<runner_cluster::objects::FunctionConfig>(object).map(drop)
            }
            _ => {
                serde_json::from_value::<runner_cluster::objects::ServiceTemplate>(object).map(drop)
            }
        };
        assert!(understood.is_ok(), "{title}: {understood:?}");
    }
}

#[test]
fn fills_in_defaults() {
    let spec = serde_json::json!({"image": "fn", "podExecutor": {}});
    let mut object = serde_json::json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": {"name": "fn"},
        "spec": spec,
    });
    assert_eq!(
        admit(&mut object, &schemas()["FunctionConfig"]),
        Vec::<String>::new()
    );
    assert_eq!(object["spec"]["podExecutor"]["timeToLive"], "30m");
}
