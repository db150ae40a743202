//! Checks of the files in `deploy/` without installing them: kustomize and Helm agree, and the
//! network policies allow only the intended connections.
//!
//! The test bed's network does not enforce policies, so the tests evaluate them by the API's rules.

mod flows;

use std::{collections::BTreeMap, process::Command};

use e2e::{
    deployment::{deploy, documents},
    running_testbed,
};
use flows::{Flow, Pod};
use serde_json::Value;

/// Objects by kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

fn by_name(documents: Vec<Value>) -> Objects {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    documents
        .into_iter()
        .map(|object| {
            let metadata = &object["metadata"];
            let name = (
                text(&object["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"]),
            );
            (name, object)
        })
        .collect()
}

fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {says}");
    String::from_utf8(output.stdout).expect("text")
}

fn kustomize(directory: &str) -> Objects {
    let kube = running_testbed().kube().expect("kubectl is built");
    let rendered = output(
        Command::new(kube)
            .args(["kubectl", "kustomize"])
            .arg(deploy().join(directory)),
    );
    by_name(documents(&rendered))
}

fn helm(values: &[&str]) -> Objects {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/build");
    let program = output(Command::new(build).args(["--path", "helm"]));
    let mut command = Command::new(program.trim());
    command
        .args([
            "template",
            "function-runner",
            "--namespace=porch-system",
            "--include-crds",
        ])
        .args(["--kube-version=1.34.0"])
        .arg(deploy().join("chart"));
    for value in values {
        command.args(["--set", value]);
    }
    by_name(documents(&output(&mut command)))
}

/// Removes the release's namespace, which Helm creates itself and does not render.
fn without_own_namespace(mut objects: Objects) -> Objects {
    let own = (
        "Namespace".to_owned(),
        String::new(),
        "porch-system".to_owned(),
    );
    objects.remove(&own).expect("kustomize makes the namespace");
    objects
}

#[track_caller]
fn assert_same(chart: &Objects, kustomized: &Objects) {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(chart), names(kustomized));
    for (name, object) in chart {
        assert_eq!(object, &kustomized[name], "{name:?}");
    }
}

#[test]
fn the_chart_renders_the_same_objects_as_the_base() {
    assert_same(&helm(&[]), &without_own_namespace(kustomize("base")));
}

#[test]
fn values_of_the_chart_render_the_same_objects_as_the_overlays() {
    for (value, overlay) in [
        ("podConnect=service", "overlays/mesh"),
        ("privateRegistry.enabled=true", "overlays/private-registry"),
    ] {
        assert_same(&helm(&[value]), &without_own_namespace(kustomize(overlay)));
    }
    let observed = helm(&["serviceMonitor.enabled=true", "prometheusRule.enabled=true"]);
    for (name, object) in kustomize("observability") {
        assert_eq!(observed[&name], object);
    }
}

#[test]
fn every_image_has_the_version_of_the_workspace() {
    let version = format!(":v{}", env!("CARGO_PKG_VERSION"));
    for object in kustomize("base").values() {
        if object["kind"] == "Deployment" {
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            for image in [&container["image"], &container["env"][0]["value"]] {
                let image = image.as_str().expect("an image");
                assert!(image.ends_with(&version), "{image}");
            }
        }
    }
}

#[test]
fn functions_can_connect_only_to_the_announce_port_and_only_the_runner_can_connect_to_them() {
    let policies: Vec<Value> = kustomize("base")
        .into_values()
        .filter(|object| object["kind"] == "NetworkPolicy")
        .collect();
    let runner = Pod::new("porch-system", &[("app", "function-runner")]);
    let porch = Pod::new("porch-system", &[("app", "porch-server")]);
    let function = Pod::new("porch-fn-system", &[("fn.kpt.dev/image", "count")]);
    let other = Pod::new("porch-fn-system", &[("fn.kpt.dev/image", "other")]);
    let stranger = Pod::new("elsewhere", &[("app", "function-runner")]);
    let guest = Pod::new("porch-fn-system", &[]);
    let names = Pod::new("kube-system", &[("k8s-app", "kube-dns")]);
    // The API server and registries, which are not pods or need not be.
    let outside = Pod::outside();
    let allowed = |from: &Pod, to: &Pod, port: u16| Flow { from, to, port }.is_allowed(&policies);

    assert!(allowed(&porch, &runner, 9445));
    assert!(allowed(&function, &runner, 9447));
    assert!(allowed(&runner, &function, 9446));
    assert!(allowed(&stranger, &runner, 9464), "metrics are for all");
    assert!(allowed(&runner, &outside, 443));
    assert!(allowed(&runner, &names, 53));

    assert!(!allowed(&function, &outside, 443), "API server, registry");
    assert!(!allowed(&function, &other, 9446));
    assert!(!allowed(&function, &names, 53));
    assert!(!allowed(&function, &runner, 9445));
    assert!(!allowed(&function, &porch, 443));
    assert!(!allowed(&porch, &function, 9446));
    assert!(!allowed(&stranger, &function, 9446));
    assert!(!allowed(&stranger, &runner, 9445));
    assert!(!allowed(&guest, &runner, 9447));
    assert!(!allowed(&outside, &runner, 9447));
}
