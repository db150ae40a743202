use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use runner_pool::{Attempt, Function, PodName, Settings, TemplateVersion, Time};
use serde_json::{Value, json};

use super::*;

const SHA: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn create(image: &str) -> Create {
    let image: ImageReference = format!("{image}@{SHA}").parse().unwrap();
    let digest = image.digest().unwrap().clone();
    Create {
        name: PodName::from("fn-v1-1-01234567-x7k2p"),
        slot: PodName::from("fn-v1-1-01234567"),
        attempt: Attempt(1),
        function: Arc::new(Function::new(&image, digest, Settings::default())),
        template: TemplateVersion::new(&"17".into(), 0),
        reclaim_after: Time::from_unix_secs(1_000),
    }
}

fn options() -> RenderOptions {
    RenderOptions {
        wrapper_image: "example.com/wrapper:v1".to_owned(),
        max_request_body_size: 100,
        ..RenderOptions::default()
    }
}

fn rendered(overrides: Option<&PodOverrides>, options: &RenderOptions) -> Value {
    let announce = AnnounceTarget {
        runner: "198.18.0.9:9447".to_owned(),
        token: "secret".to_owned(),
    };
    let pod = render_pod(
        &create("ghcr.io/x/fn:v1"),
        &Templates::built_in(),
        &["/fn".to_owned(), "$(HOME)".to_owned()],
        overrides,
        Some(&announce),
        options,
    );
    serde_json::to_value(pod).unwrap()
}

fn spec_of(templates: &Templates, options: &RenderOptions) -> PodSpec {
    let create = create("ghcr.io/x/fn:v1");
    let pod = render_pod(&create, templates, &[], None, None, options);
    pod.spec.unwrap()
}

fn beside() -> RenderOptions {
    RenderOptions {
        injection: Injection::Container,
        ..options()
    }
}

#[test]
fn renders_a_pod_with_the_documented_names_images_and_arguments() {
    let pod = rendered(None, &options());
    assert_eq!(pod["metadata"]["name"], "fn-v1-1-01234567-x7k2p");
    assert_eq!(pod["metadata"]["labels"][IMAGE_LABEL], "fn-v1-1-01234567");
    let managed_by = &pod["metadata"]["labels"]["app.kubernetes.io/managed-by"];
    assert_eq!(managed_by, "krm-function-runner");
    assert_eq!(pod["metadata"]["annotations"][TEMPLATE_VERSION], "17+0-0");
    assert_eq!(pod["metadata"]["annotations"][RECLAIM_AFTER], "1000");
    assert_eq!(pod["metadata"]["annotations"][SAFE_TO_EVICT], "true");
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["image"], "example.com/wrapper:v1");
    assert_eq!(
        init["command"],
        json!([
            "cp",
            "-a",
            "/home/nonroot/wrapper-server/.",
            "/wrapper-server-tools"
        ])
    );
    let function = &pod["spec"]["containers"][0];
    assert_eq!(function["image"], format!("ghcr.io/x/fn:v1@{SHA}"));
    assert_eq!(
        function["args"],
        json!([
            "--port",
            "9446",
            "--max-request-body-size",
            "100",
            "--",
            "/fn",
            "$$(HOME)"
        ])
    );
    assert_eq!(
        function["readinessProbe"]["exec"]["command"],
        json!([
            "/wrapper-server-tools/grpc-health-probe",
            "-addr",
            "localhost:9446"
        ])
    );
}

#[test]
fn restricts_privileges_by_default() {
    let pod = rendered(None, &options());
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(
        spec["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    for container in [&spec["initContainers"][0], &spec["containers"][0]] {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    }
}

#[test]
fn keeps_the_security_settings_of_the_template() {
    let mut templates = Templates::built_in();
    let spec = templates.pod.spec.as_mut().unwrap();
    spec.automount_service_account_token = Some(true);
    spec.containers[0]
        .security_context
        .get_or_insert_default()
        .privileged = Some(true);
    let spec = spec_of(&templates, &options());
    assert_eq!(spec.automount_service_account_token, Some(true));
    let context = spec.containers[0].security_context.as_ref().unwrap();
    assert_eq!(context.allow_privilege_escalation, None);
}

#[test]
fn sets_the_announcement_variables_of_the_wrapper() {
    let pod = rendered(None, &options());
    let env = &pod["spec"]["containers"][0]["env"];
    assert_eq!(
        env[0],
        json!({"name": "KRM_WRAPPER_RUNNER", "value": "198.18.0.9:9447"})
    );
    assert_eq!(
        env[2],
        json!({"name": "KRM_WRAPPER_TOKEN", "value": "secret"})
    );
    assert_eq!(env[3]["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
}

#[test]
fn replaces_the_init_container_by_an_image_volume() {
    let pod = rendered(
        None,
        &RenderOptions {
            injection: Injection::Image,
            ..options()
        },
    );
    let spec = &pod["spec"];
    assert_eq!(spec["initContainers"], json!([]));
    assert_eq!(
        spec["volumes"][0]["image"]["reference"],
        "example.com/wrapper:v1"
    );
    let function = &spec["containers"][0];
    let wrapper = "/wrapper-server-tools/home/nonroot/wrapper-server/wrapper-server";
    assert_eq!(function["command"], json!([wrapper]));
    let probe = function["readinessProbe"]["exec"]["command"][0]
        .as_str()
        .unwrap();
    assert!(
        probe.ends_with("/home/nonroot/wrapper-server/grpc-health-probe"),
        "{probe}"
    );
}

#[test]
fn copies_the_wrapper_in_a_container_beside_the_function() {
    let overrides = PodOverrides::new(&json!({
        "initContainer": {"resources": {"requests": {"cpu": "10m"}}},
    }));
    let pod = rendered(Some(&overrides), &beside());
    let spec = &pod["spec"];
    assert_eq!(spec["initContainers"], json!([]));
    let [copying, function] = &spec["containers"].as_array().unwrap()[..] else {
        panic!("{spec}")
    };
    assert_eq!(function["name"], "function");
    assert_eq!(copying["image"], "example.com/wrapper:v1");
    assert_eq!(copying["resources"]["requests"]["cpu"], "10m");
    let hold = ["/home/nonroot/wrapper-server/wrapper-server", "hold"];
    assert_eq!(copying["command"], json!(hold));
    let by_init = rendered(None, &options());
    let init = &by_init["spec"]["initContainers"][0];
    assert_eq!(
        copying["lifecycle"]["postStart"]["exec"]["command"],
        init["command"]
    );
    for same in ["volumeMounts", "securityContext"] {
        assert_eq!(copying[same], init[same], "{same}");
    }
}

#[test]
fn keeps_an_init_container_without_a_command() {
    let mut templates = Templates::built_in();
    let spec = templates.pod.spec.as_mut().unwrap();
    spec.init_containers.as_mut().unwrap()[0].command = None;
    let spec = spec_of(&templates, &beside());
    assert_eq!(spec.init_containers.unwrap().len(), 1);
    assert_eq!(spec.containers.len(), 1);
}

#[test]
fn applies_the_overrides_of_a_function_config() {
    let overrides = PodOverrides::new(&json!({
        "serviceAccountName": "blue",
        "container": {"resources": {"limits": {"memory": "64Mi"}}, "env": [{"name": "A", "value": "1"}]},
    }));
    let pod = rendered(Some(&overrides), &options());
    assert_eq!(pod["spec"]["serviceAccountName"], "blue");
    let function = &pod["spec"]["containers"][0];
    assert_eq!(function["resources"]["limits"]["memory"], "64Mi");
    assert_eq!(function["env"][0], json!({"name": "A", "value": "1"}));
    let parsed = TemplateOverrides::parse(&overrides);
    assert_eq!(
        overrides_fingerprint(Some(&PodOverrides::new(&parsed))),
        fingerprint_of(&parsed),
        "pods of earlier runners with these overrides are kept"
    );
    assert_eq!(
        overrides_fingerprint(Some(&PodOverrides::new(&TemplateOverrides::default()))),
        0
    );
}

#[test]
fn adds_the_pull_secret_only_for_images_outside_the_public_catalogs() {
    let options = RenderOptions {
        pull_secret: Some("auth".to_owned()),
        ..options()
    };
    let secrets = |image| {
        render_pod(
            &create(image),
            &Templates::built_in(),
            &[],
            None,
            None,
            &options,
        )
        .spec
        .unwrap()
        .image_pull_secrets
    };
    assert_eq!(secrets("ghcr.io/x/fn:v1").unwrap()[0].name, "auth");
    assert_eq!(secrets("gcr.io/kpt-fn/set-labels:v1"), None);
    let newer = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v1";
    assert_eq!(secrets(newer), None);
    let neighbour = "ghcr.io/kptdev/krm-functions-catalog-private/set-labels:v1";
    assert!(secrets(neighbour).is_some());
}

#[test]
fn keeps_the_digest_of_a_pod_that_names_its_image_by_tag() {
    let options = RenderOptions {
        pinning: Pinning::Tag,
        ..options()
    };
    let templates = Templates::built_in();
    let create = create("ghcr.io/x/fn:v1");
    let mut pod = render_pod(&create, &templates, &[], None, None, &options);
    let function = &pod.spec.as_ref().unwrap().containers[0];
    assert_eq!(function.image.as_deref(), Some("ghcr.io/x/fn:v1"));
    assert_eq!(function.image_pull_policy.as_deref(), Some("Always"));
    pod.metadata.uid = Some("u1".to_owned());
    pod.metadata.resource_version = Some("1".to_owned());
    let observation = crate::observe(&pod).unwrap();
    assert_eq!(observation.observed.image, *create.function.image());
}
