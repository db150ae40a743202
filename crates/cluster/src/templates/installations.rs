//! Tests with the templates of existing installations.
//!
//! The templates are fixtures of this crate, and those that Porch ships if their directory exists.

use std::{fs, path::Path};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplate};
use rstest::rstest;
use serde::de::DeserializeOwned;

use crate::objects::ServiceTemplate;
use crate::{Injection, RenderOptions, Templates, render_service, sample_pod};

/// Directory with the objects of real installations, beside the checkout.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/porch");
const OLDER: &str = include_str!("fixtures/older-config-map.yaml");
const OBJECTS: &str = include_str!("fixtures/objects.yaml");

/// Returns the text of a shipped file, or `fixture` if the file is missing.
fn shipped(file: &str, fixture: &str) -> String {
    let path = Path::new(SHIPPED).join(file);
    fs::read_to_string(&path).unwrap_or_else(|_| {
        eprintln!("skipped {}: it does not exist", path.display());
        fixture.to_owned()
    })
}

/// Returns the first object of a kind in a multi-document file.
fn object<T: DeserializeOwned>(text: &str, kind: &str) -> T {
    let kind = format!("\nkind: {kind}\n");
    let mut documents = text.split("\n---");
    let document = documents.find(|document| document.contains(&kind));
    serde_saphyr::from_str(document.expect("an object of the kind")).unwrap()
}

fn rendered(templates: &Templates, injection: Injection) -> Pod {
    let options = RenderOptions {
        wrapper_image: "example.com/ours:v1".to_owned(),
        injection,
        ..RenderOptions::default()
    };
    sample_pod("fn-1", templates, &options)
}

#[rstest]
#[case::ours(OLDER.to_owned())]
#[case::shipped(shipped("older/function-pod-template.yaml", OLDER))]
fn loads_the_older_config_map_with_misplaced_annotations(#[case] text: String) {
    let map: ConfigMap = object(&text, "ConfigMap");
    let templates = Templates::of_config_map(&map).unwrap();
    assert!(!templates.is_built_in());
    let spec = rendered(&templates, Injection::Init).spec.unwrap();
    let copying = &spec.init_containers.unwrap()[0];
    assert_eq!(copying.image.as_deref(), Some("example.com/ours:v1"));
    let service = render_service(&"fn-1".into(), &templates, &RenderOptions::default());
    let service = service.spec.unwrap();
    assert_eq!(service.selector.unwrap()["fn.kpt.dev/image"], "fn-1");
    let ports: Vec<_> = service
        .ports
        .unwrap()
        .iter()
        .map(|port| port.port)
        .collect();
    assert_eq!(ports, [9446, 9464]);
}

#[rstest]
#[case::ours(OBJECTS.to_owned())]
#[case::spring_2026(shipped("2026-04/function-templates.yaml", OBJECTS))]
#[case::current(shipped("current/function-templates.yaml", OBJECTS))]
fn renders_template_objects_with_a_liveness_probe_and_pull_policies(#[case] text: String) {
    let pod: PodTemplate = object(&text, "PodTemplate");
    let service: ServiceTemplate = object(&text, "ServiceTemplate");
    let templates = Templates::of_objects(Some(&pod), Some(&service)).unwrap();
    assert!(!templates.is_built_in());
    let spec = rendered(&templates, Injection::Init).spec.unwrap();
    let copying = &spec.init_containers.unwrap()[0];
    assert_eq!(copying.image.as_deref(), Some("example.com/ours:v1"));
    let function = &spec.containers[0];
    assert_eq!(function.image_pull_policy.as_deref(), Some("IfNotPresent"));
    let probe = |function: &k8s_openapi::api::core::v1::Container| {
        let exec = function.liveness_probe.as_ref().unwrap().exec.as_ref();
        exec.unwrap().command.as_ref().unwrap()[0].clone()
    };
    assert_eq!(probe(function), "/wrapper-server-tools/grpc-health-probe");

    let mounted = rendered(&templates, Injection::Image).spec.unwrap();
    assert_eq!(
        probe(&mounted.containers[0]),
        "/wrapper-server-tools/home/nonroot/wrapper-server/grpc-health-probe",
        "the liveness probe finds its program where the image is mounted"
    );
}
