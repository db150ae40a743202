//! Installations of Porch with nothing changed but the two images: each starts, becomes ready with
//! its own command, probes and environment, and answers for every function it lists.
//!
//! Images of the public catalogs cannot be pulled on the test bed. A call for one of them must
//! therefore end with the registry's own reason, never with a missing binary and never NOT_FOUND.

use e2e::{
    LIMIT, Stage, connect,
    deployment::{Installation, Manifest},
    evaluate, eventually, on_disturbed_cluster, resource_list,
};
use futures::{StreamExt, stream};
use runner_core::Reason;
use runner_proto::evaluator::EvaluateFunctionRequest;
use serde_json::Value;
use tonic::Code;

/// Calls in flight at a time.
const PARALLEL: usize = 64;

/// A function as a client names it.
#[derive(Clone, Debug)]
struct Named {
    image: String,
    tag: String,
}

/// Our own objects of the generation, if it has definitions those of this project.
fn own(names: &[&str]) -> Vec<Manifest> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    names
        .iter()
        .map(|name| {
            let text = std::fs::read_to_string(format!("{root}/{name}"));
            Manifest::new(
                name,
                &text.unwrap_or_else(|error| panic!("{name}: {error}")),
            )
        })
        .collect()
}

/// Applies the manifests and calls every function they list.
fn replay(manifests: Option<Vec<Manifest>>) {
    let Some(manifests) = manifests else {
        return;
    };
    on_disturbed_cluster(async |stage| {
        let installation = Installation::apply(&stage, manifests).await;
        runs_in_a_pod(&installation).await;
        let listed = listed(&installation.objects());
        assert!(!listed.is_empty(), "the installation lists functions");
        answers_for(&installation, listed).await;
        for text in installation.metrics().await {
            assert!(text.contains("rpc_server_"), "{text}");
        }
        reports_missing_binaries(&installation).await;
        assert_eq!(installation.restarts().await, 0);
    });
}

/// One function whose image can be pulled is evaluated in a pod of the installation's template.
async fn runs_in_a_pod(installation: &Installation) {
    let mut client = connect(&installation.address().await).expect("an address");
    let input = resource_list(&[], 2);
    let image = installation.function("count");
    let answer = evaluate(&mut client, &image, input.clone()).await;
    let answer = answer.expect("the function answers");
    assert_eq!(answer.resource_list, input.as_bytes());
}

/// A binary that the image lacks is in the status of its object, and the generation is there where
/// the definition has the field.
async fn reports_missing_binaries(installation: &Installation) {
    let objects = installation.objects();
    if !objects
        .iter()
        .any(|object| object["kind"] == "FunctionConfig")
    {
        return;
    }
    let has_generation = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .any(|object| {
            object
                .to_string()
                .contains("functionRunnerObservedGeneration")
        });
    eventually("the status of every object", async || {
        let objects = installation.function_configs().await;
        objects.iter().all(|object| {
            let (spec, status) = (&object["spec"], &object["status"]);
            let error = status["error"].as_str().unwrap_or_default();
            let path = spec["binaryExecutor"]["path"].as_str();
            let generation = &status["functionRunnerObservedGeneration"];
            let generation = match has_generation {
                true => *generation == object["metadata"]["generation"],
                false => generation.is_null(),
            };
            generation && path.is_none_or(|path| error.contains(path))
        })
    })
    .await;
}

async fn answers_for(installation: &Installation, listed: Vec<Named>) {
    let client = connect(&installation.address().await).expect("an address");
    let calls = stream::iter(listed).map(|named| {
        let mut client = client.clone();
        async move {
            let mut request = tonic::Request::new(EvaluateFunctionRequest {
                resource_list: resource_list(&[], 1).into_bytes().into(),
                image: named.image.clone(),
                tag: named.tag.clone(),
                ..EvaluateFunctionRequest::default()
            });
            request.set_timeout(LIMIT);
            (named, client.evaluate_function(request).await)
        }
    });
    let answers: Vec<_> = calls.buffer_unordered(PARALLEL).collect().await;
    for (named, answer) in answers {
        let Err(status) = answer else { continue };
        let reason = runner_proto::status::decode(&status).reason();
        assert!(
            status.code() == Code::Unavailable && reason == Reason::RegistryUnreachable,
            "{named:?}: {status:?}"
        );
        assert!(!status.message().contains("no such file"), "{status:?}");
    }
}

/// Returns every function and tag that FunctionConfig objects and warm pod lists name.
fn listed(objects: &[Value]) -> Vec<Named> {
    let mut all = Vec::new();
    for object in objects {
        match object["kind"].as_str() {
            Some("FunctionConfig") => all.extend(configured(&object["spec"])),
            Some("ConfigMap") => all.extend(warm(&object["data"]["pod-cache-config.yaml"])),
            _ => {}
        }
    }
    all
}

fn configured(spec: &Value) -> Vec<Named> {
    let name = spec["image"].as_str().expect("a name");
    let executors = ["podExecutor", "binaryExecutor", "goExecutor"];
    let tags = executors
        .iter()
        .filter_map(|executor| spec[executor]["tags"].as_array())
        .flatten()
        .filter_map(Value::as_str);
    tags.flat_map(|tag| {
        let named = |prefix: &str| match tag.starts_with('v') {
            true => Named {
                image: format!("{prefix}{name}:{tag}"),
                tag: String::new(),
            },
            false => Named {
                image: format!("{prefix}{name}"),
                tag: tag.to_owned(),
            },
        };
        [named(""), named("ghcr.io/kptdev/krm-functions-catalog/")]
    })
    .collect()
}

/// Both forms: a list of objects with a `name`, and a map from image to TTL.
fn warm(file: &Value) -> Vec<Named> {
    let text = file.as_str().unwrap_or_default();
    let parsed: Value = serde_saphyr::from_str(text).expect("a warm pod list");
    let images: Vec<String> = match &parsed {
        Value::Array(entries) => entries
            .iter()
            .filter_map(|entry| entry["name"].as_str().map(str::to_owned))
            .collect(),
        Value::Object(entries) => entries.keys().cloned().collect(),
        _ => Vec::new(),
    };
    images
        .into_iter()
        .map(|image| Named {
            image,
            tag: String::new(),
        })
        .collect()
}

const CURRENT_RBAC: &str = "porch/current/rbac.yaml";

#[test]
fn the_config_map_generation_works_unchanged() {
    replay(Some(own(&[
        "tests/e2e/fixtures/porch/config-map-generation.yaml",
    ])));
}

#[test]
fn porchs_objects_of_november_2025_work_unchanged() {
    replay(Manifest::shared(&[
        "porch/older/rbac.yaml",
        "porch/older/function-runner-2025-11.yaml",
    ]));
}

#[test]
fn nephios_catalog_of_february_2026_works_unchanged() {
    replay(Manifest::shared(&[
        "porch/older/rbac.yaml",
        "porch/older/function-runner-catalog.yaml",
    ]));
}

#[test]
fn porchs_last_config_map_objects_work_unchanged() {
    replay(Manifest::shared(&[
        "porch/older/rbac.yaml",
        "porch/older/function-pod-template.yaml",
        "porch/older/function-runner.yaml",
    ]));
}

#[test]
fn the_function_config_generation_works_unchanged() {
    replay(Some(own(&[
        "deploy/crds/functionconfigs.yaml",
        "deploy/crds/servicetemplates.yaml",
        "tests/e2e/fixtures/porch/function-config-generation.yaml",
    ])));
}

#[test]
fn porchs_objects_of_april_2026_work_unchanged() {
    replay(Manifest::shared(&[
        "crds/functionconfigs.yaml",
        "crds/servicetemplates.yaml",
        CURRENT_RBAC,
        "porch/2026-04/function-runner.yaml",
        "porch/2026-04/function-templates.yaml",
        "porch/2026-04/functionconfigs.yaml",
    ]));
}

#[test]
fn porchs_current_objects_work_unchanged() {
    replay(Manifest::shared(&[
        "porch/current/crd-functionconfigs.yaml",
        "crds/servicetemplates.yaml",
        CURRENT_RBAC,
        "porch/current/function-runner.yaml",
        "porch/current/function-templates.yaml",
        "porch/current/functionconfigs.yaml",
    ]));
}

#[test]
fn the_newest_generation_serves_exec_without_rights_and_without_a_wrapper_image() {
    on_disturbed_cluster(async |stage: Stage| {
        let manifests = own(&["tests/e2e/fixtures/porch/exec-only.yaml"]);
        let installation = Installation::apply(&stage, manifests).await;
        let mut client = connect(&installation.address().await).expect("an address");
        let path = "/home/nonroot/functions/set-namespace";
        let request = EvaluateFunctionRequest {
            resource_list: resource_list(&[], 1).into_bytes().into(),
            image: "set-namespace:v0.4.1".to_owned(),
            exec_path: path.to_owned(),
            ..EvaluateFunctionRequest::default()
        };
        let status = client.evaluate_function(request).await;
        let status = status.expect_err("the image has no such binary");
        assert_eq!(status.code(), Code::Internal, "{status:?}");
        let expected = format!("fork/exec {path}: no such file or directory");
        assert!(status.message().contains(&expected), "{status:?}");
        let log = installation.log().await;
        let said = log
            .lines()
            .filter(|line| line.contains("pod runtime is off"));
        assert_eq!(said.count(), 1, "{log}");
        assert_eq!(installation.restarts().await, 0);
    });
}

#[test]
fn the_requirements_example_works_unchanged() {
    on_disturbed_cluster(async |stage: Stage| {
        let mut manifests = own(&["tests/e2e/fixtures/porch/requirement-example.yaml"]);
        // The example names no service account, so the Role is the default account's.
        let role = include_str!("../fixtures/installation-role.yaml");
        let role = role.replace(
            "name: function-runner",
            "name: function-runner\n  namespace: porch-fn-system",
        );
        let binding = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: function-runner, namespace: porch-fn-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: function-runner}
subjects:
- {kind: ServiceAccount, name: default, namespace: porch-system}
";
        manifests.insert(0, Manifest::new("role", &format!("{role}\n---\n{binding}")));
        let installation = Installation::apply(&stage, manifests).await;
        runs_in_a_pod(&installation).await;
        assert_eq!(installation.restarts().await, 0);
    });
}
