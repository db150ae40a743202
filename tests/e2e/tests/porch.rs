//! Installations of Porch with only the two images replaced.
//!
//! Each starts, becomes ready with its own command, probes and environment, and answers for every
//! function that it lists.
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
use runner_proto::{
    evaluator::EvaluateFunctionRequest, health::health_check_response::ServingStatus,
};
use serde_json::{Value, json};
use tonic::Code;

/// Number of concurrent calls.
const PARALLEL: usize = 64;
/// Exec map inside Porch's image of the ConfigMap generation.
const EXEC_MAP: &str = "porch/older/exec-config.yaml";
/// Directory that clients use in `exec_path`.
const FUNCTIONS: &str = "/home/nonroot/functions";
/// Seconds after which the liveness probe of the requirement's example has run twice.
///
/// It begins after 30 s, and the kubelet calls it in a period of 10 s that began before.
const TWO_LIVENESS_PROBES: i64 = 50;

/// A function as a client names it.
#[derive(Clone, Debug)]
struct Named {
    image: String,
    tag: String,
}

/// Reads manifests of this project; paths are relative to its root.
fn own_manifests(names: &[&str]) -> Vec<Manifest> {
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
    replay_with(manifests, Vec::new());
}

/// Replays Porch's objects of the ConfigMap generation, and also calls the functions of its exec
/// map.
fn replay_older(paths: &[&str]) {
    let mut manifests = Manifest::shared(&[paths, &[EXEC_MAP]].concat());
    let exec_map = manifests.as_mut().and_then(Vec::pop);
    replay_with(manifests, exec_map.as_ref().map(mapped).unwrap_or_default());
}

/// Applies the manifests, and calls every function that they list and those in `more`.
fn replay_with(manifests: Option<Vec<Manifest>>, more: Vec<Named>) {
    let Some(manifests) = manifests else {
        return;
    };
    on_disturbed_cluster(async |stage| {
        let installation = Installation::apply(&stage, manifests).await;
        runs_in_a_pod(&installation).await;
        let mut listed = listed(&installation.objects());
        listed.extend(more);
        assert!(!listed.is_empty(), "the installation lists functions");
        answers_for(&installation, listed).await;
        for text in installation.metrics().await {
            assert!(text.contains("rpc_server_"), "{text}");
        }
        reports_missing_binaries(&installation).await;
        assert_eq!(installation.restarts().await, 0);
    });
}

/// Evaluates a function whose image can be pulled, in a pod of the installation's template.
async fn runs_in_a_pod(installation: &Installation) {
    let mut client = connect(&installation.address().await).expect("an address");
    let input = resource_list(&[], 2);
    let image = installation.function("count");
    let answer = evaluate(&mut client, &image, input.clone()).await;
    let answer = answer.expect("the function answers");
    assert_eq!(answer.resource_list, input.as_bytes());
}

/// Checks that the status of an object reports a binary that the image lacks, and has the
/// generation if the definition has that field.
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

/// Returns every function and tag in FunctionConfig objects and warm pod lists.
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

/// Returns every image of an exec map (the file of `--config`), by tag or by digest.
fn mapped(exec_map: &Manifest) -> Vec<Named> {
    let map: Value = serde_saphyr::from_str(exec_map.text()).expect("an exec map");
    let functions = map["functions"].as_array().expect("functions").iter();
    let images = functions.filter_map(|function| function["images"].as_array());
    let images = images.flatten().filter_map(Value::as_str);
    let all: Vec<_> = images
        .map(|image| Named {
            image: image.to_owned(),
            tag: String::new(),
        })
        .collect();
    assert!(
        all.iter().any(|named| named.image.contains("@sha256:")),
        "the exec map names digests"
    );
    all
}

/// Returns the images of a warm pod list: a list of objects with a `name`, or a map from image to
/// TTL.
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
    let exec_map = own_manifests(&["tests/e2e/fixtures/porch/exec-config.yaml"]);
    let manifests = own_manifests(&["tests/e2e/fixtures/porch/config-map-generation.yaml"]);
    replay_with(Some(manifests), mapped(&exec_map[0]));
}

#[test]
fn porchs_objects_of_november_2025_work_unchanged() {
    replay_older(&[
        "porch/older/rbac.yaml",
        "porch/older/function-runner-2025-11.yaml",
    ]);
}

#[test]
fn nephios_catalog_of_february_2026_works_unchanged() {
    replay_older(&[
        "porch/older/rbac.yaml",
        "porch/older/function-runner-catalog.yaml",
    ]);
}

#[test]
fn porchs_last_config_map_objects_work_unchanged() {
    replay_older(&[
        "porch/older/rbac.yaml",
        "porch/older/function-pod-template.yaml",
        "porch/older/function-runner.yaml",
    ]);
}

/// Adds the flag for the template ConfigMap to the runner's command, and evaluates a function in a
/// pod of that template.
fn uses_the_template_config_map(manifests: Option<Vec<Manifest>>) {
    let Some(manifests) = manifests else {
        return;
    };
    let manifests = manifests.into_iter().map(|manifest| {
        manifest.with_deployment(|spec| {
            let command = &mut spec["containers"][0]["command"];
            let flag = "--function-pod-template=kpt-function-eval-pod-template";
            command.as_array_mut().expect("a command").push(json!(flag));
        })
    });
    let manifests = manifests.collect();
    on_disturbed_cluster(async |stage: Stage| {
        let installation = Installation::apply(&stage, manifests).await;
        runs_in_a_pod(&installation).await;
        // Only this template has a port for metrics.
        let pods = installation.function_pods().await;
        assert!(!pods.is_empty(), "the function runs in a pod");
        for pod in pods {
            let containers = pod.spec.expect("a spec").containers;
            let mut ports = containers.iter().flat_map(|it| it.ports.iter().flatten());
            let found = ports.any(|port| port.name.as_deref() == Some("metrics"));
            assert!(found, "{containers:?}");
        }
        eventually("a Service with a port for metrics", async || {
            let services = installation.function_services().await;
            let specs = services.into_iter().filter_map(|service| service.spec);
            let mut ports = specs.flat_map(|spec| spec.ports.unwrap_or_default());
            ports.any(|port| port.name.as_deref() == Some("metrics"))
        })
        .await;
        for text in installation.metrics().await {
            assert!(text.contains("rpc_server_"), "{text}");
        }
        assert_eq!(installation.restarts().await, 0);
    });
}

#[test]
fn a_template_config_map_with_a_misplaced_key_is_used() {
    uses_the_template_config_map(Some(own_manifests(&[
        "tests/e2e/fixtures/porch/config-map-generation.yaml",
        "tests/e2e/fixtures/porch/function-pod-template.yaml",
    ])));
}

#[test]
fn porchs_template_config_map_is_used() {
    uses_the_template_config_map(Manifest::shared(&[
        "porch/older/rbac.yaml",
        "porch/older/function-pod-template.yaml",
        "porch/older/function-runner.yaml",
    ]));
}

#[test]
fn the_function_config_generation_works_unchanged() {
    replay(Some(own_manifests(&[
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
        "porch/current/namespaces.yaml",
        "porch/current/crd-functionconfigs.yaml",
        "crds/servicetemplates.yaml",
        CURRENT_RBAC,
        "porch/current/function-runner.yaml",
        "porch/current/function-templates.yaml",
        "porch/current/functionconfigs.yaml",
    ]));
}

/// Adds an executable to the directory of functions: busybox as `cat`, which returns its input.
///
/// The runner's image has no function and no shell.
fn with_executable(manifest: Manifest, image: &str) -> Manifest {
    let mount = json!({"name": "functions", "mountPath": FUNCTIONS});
    manifest.with_deployment(|spec| {
        spec["volumes"] = json!([{"name": "functions", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] = json!([mount]);
        spec["initContainers"] = json!([{
            "name": "functions", "image": image, "volumeMounts": [mount],
            "command": ["/bin/busybox", "cp", "/bin/busybox", format!("{FUNCTIONS}/cat")],
        }]);
    })
}

/// Returns whether a line of a log is about a request that the API server refused.
///
/// Times may have the same digits as the status code, so the code counts only as a word.
fn says_forbidden(line: &str) -> bool {
    let mut words = line.split(|character: char| !character.is_ascii_alphanumeric());
    line.to_lowercase().contains("forbidden") || words.any(|word| word == "403")
}

#[test]
fn the_newest_generation_serves_exec_without_rights_and_without_a_wrapper_image() {
    on_disturbed_cluster(async |stage: Stage| {
        let manifests = own_manifests(&["tests/e2e/fixtures/porch/exec-only.yaml"]);
        let busybox = stage.image("functions/count");
        let manifests = manifests.into_iter();
        let manifests = manifests.map(|manifest| with_executable(manifest, &busybox));
        let installation = Installation::apply(&stage, manifests.collect()).await;
        for service in ["", "liveness"] {
            let health = installation.health(service).await;
            assert_eq!(health, ServingStatus::Serving, "{service:?}");
        }

        let mut client = connect(&installation.address().await).expect("an address");
        let input = resource_list(&[], 1);
        let request = |path: &str| EvaluateFunctionRequest {
            resource_list: input.clone().into_bytes().into(),
            image: "set-namespace:v0.4.1".to_owned(),
            exec_path: path.to_owned(),
            ..EvaluateFunctionRequest::default()
        };
        let path = format!("{FUNCTIONS}/cat");
        let answer = client.evaluate_function(request(&path)).await;
        let answer = answer.expect("the function answers").into_inner();
        assert_eq!(answer.resource_list, input.as_bytes());

        let path = format!("{FUNCTIONS}/set-namespace");
        let status = client.evaluate_function(request(&path)).await;
        let status = status.expect_err("there is no such executable");
        assert_eq!(status.code(), Code::Internal, "{status:?}");
        let expected = format!("fork/exec {path}: no such file or directory");
        assert!(status.message().contains(&expected), "{status:?}");

        let log = installation.log().await;
        let said = log
            .lines()
            .filter(|line| line.contains("pod runtime is off"));
        assert_eq!(said.count(), 1, "{log}");
        let forbidden = log.lines().filter(|line| says_forbidden(line));
        assert!(forbidden.count() <= 1, "{log}");
        assert_eq!(installation.restarts().await, 0);
    });
}

#[test]
fn the_requirements_example_works_unchanged() {
    on_disturbed_cluster(async |stage: Stage| {
        let mut manifests = own_manifests(&["tests/e2e/fixtures/porch/requirement-example.yaml"]);
        // The example has no service account, so the Role is bound to the default account.
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
        eventually("two liveness probes", async || {
            let running = installation.running_seconds().await;
            running.is_some_and(|seconds| seconds >= TWO_LIVENESS_PROBES)
        })
        .await;
        let failed = installation.failed_probes().await;
        let liveness = |said: &&String| said.starts_with("Liveness probe failed");
        // A restart comes only after the third failure, later than this check.
        assert_eq!(failed.iter().find(liveness), None);
        assert_eq!(installation.restarts().await, 0);
    });
}
