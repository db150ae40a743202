//! The templates of function pods: objects, the older ConfigMap, and overrides of a FunctionConfig.

use e2e::{
    ANNOUNCE_FLAGS, Runner, Stage, config_map_of_runner, config_maps_of_runner, configure_pods,
    connect, evaluate, eventually, function_pods, function_services, install_definitions,
    on_cluster, resource_list,
};
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, PodTemplate, ServiceAccount};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use runner_cluster::objects::ServiceTemplate;
use serde_json::{Value, json};
use tonic::Code;

const COUNT: &str = "functions/count";
const OLDER: &str = include_str!("../fixtures/older-pod-template.yaml");

async fn answers(runner: &Runner, image: &str) -> String {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, image, resource_list(&[], 1)).await;
    let answer = answer.expect("the function answers");
    String::from_utf8_lossy(&answer.log).into_owned()
}

async fn only_pod(stage: &Stage) -> Pod {
    let mut pods = function_pods(stage).await;
    assert_eq!(pods.len(), 1);
    pods.remove(0)
}

/// Returns the resourceVersion of the template that a pod was made from: its stamp up to the `+`.
fn template_version(pod: &Pod) -> Option<&str> {
    let stamp = pod.annotations().get("fn.kpt.dev/template-version")?;
    Some(stamp.split_once('+')?.0)
}

fn container<'a>(pod: &'a Pod, name: &str) -> &'a Container {
    let spec = pod.spec.as_ref().expect("a spec");
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|known| known.name == name)
        .expect("such a container")
}

async fn change(api: &Api<PodTemplate>, change: Value) {
    let changed = api
        .patch(
            "base-pod-template",
            &PatchParams::default(),
            &Patch::Merge(change),
        )
        .await;
    changed.expect("the template can be changed");
}

#[test]
fn stores_the_built_in_templates_for_operators_to_change() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let runner = Runner::start_with_announcements(&stage, &["--wrapper-injection=init"]).await;
        runner.serving().await;
        let pods = stage.api::<PodTemplate>();
        let template = pods.get("base-pod-template").await.expect("it is stored");
        let version = template.resource_version();
        let managers = template.metadata.managed_fields.unwrap_or_default();
        let managers: Vec<_> = managers.into_iter().filter_map(|it| it.manager).collect();
        assert_eq!(managers, ["krm-function-runner"]);
        let services = stage.api::<ServiceTemplate>();
        let stored = services.get("base-service-template").await;
        stored.expect("it is stored");

        answers(&runner, &stage.image(COUNT)).await;
        let pod = only_pod(&stage).await;
        assert_eq!(template_version(&pod), version.as_deref());
        // The API server added `Always` to the stored template, because its images have no tag.
        for name in ["copy-wrapper-server", "function"] {
            let policy = container(&pod, name).image_pull_policy.as_deref();
            assert_eq!(policy, Some("IfNotPresent"), "of {name}");
        }
    });
}

#[test]
fn makes_services_from_the_service_template() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let template = json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "ServiceTemplate",
            "metadata": {"name": "base-service-template"},
            "template": {
                "metadata": {"annotations": {"example.com/team": "blue"}},
                "spec": {"sessionAffinity": "ClientIP"},
            },
        });
        let template: ServiceTemplate = serde_json::from_value(template).expect("a template");
        let stored = stage.api().create(&PostParams::default(), &template).await;
        stored.expect("the cluster takes the template");
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        answers(&runner, &stage.image(COUNT)).await;
        let service = function_services(&stage).await.remove(0);
        assert_eq!(service.annotations()["example.com/team"], "blue");
        let affinity = service.spec.and_then(|spec| spec.session_affinity);
        assert_eq!(affinity.as_deref(), Some("ClientIP"));
    });
}

#[test]
fn reports_an_invalid_template_and_uses_the_last_valid_one() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        runner.serving().await;
        let templates = stage.api::<PodTemplate>();
        change(
            &templates,
            json!({"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}),
        )
        .await;
        let complaint = "exactly one container named \"function\"";
        eventually("the complaint", async || {
            let degraded = runner.status().await.degraded;
            degraded.iter().any(|what| what.contains(complaint))
        })
        .await;
        assert!(runner.log().contains(complaint));
        answers(&runner, &stage.image(COUNT)).await;
        container(&only_pod(&stage).await, "function");
    });
}

#[test]
fn fails_calls_until_there_is_a_valid_template() {
    on_cluster(async |stage| {
        let bad = json!({
            "metadata": {"name": "base-pod-template"},
            "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}},
        });
        let bad: PodTemplate = serde_json::from_value(bad).expect("a template");
        let stored = stage.api().create(&PostParams::default(), &bad).await;
        stored.expect("the cluster takes the template");
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        runner.serving().await;
        let mut client = connect(&runner.address()).expect("an address");
        let list = resource_list(&[], 1);
        let refused = evaluate(&mut client, &stage.image(COUNT), &*list).await;
        let refused = refused.expect_err("there is no pod");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(
            refused
                .message()
                .contains("container named \"function\", it has 0"),
            "{refused}"
        );

        let function = json!({
            "name": "function", "image": "replaced",
            "command": ["/wrapper-server-tools/wrapper-server"],
            "volumeMounts": [{"name": "wrapper-server-tools", "mountPath": "/wrapper-server-tools"}],
        });
        let good = json!({"template": {"spec": {
            "initContainers": [{
                "name": "copy-wrapper-server", "image": "replaced",
                "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", "/wrapper-server-tools"],
                "volumeMounts": function["volumeMounts"],
            }],
            "containers": [function],
            "volumes": [{"name": "wrapper-server-tools", "emptyDir": {}}],
        }}});
        change(&stage.api(), good).await;
        eventually("an answer", async || {
            evaluate(&mut client, &stage.image(COUNT), &*list)
                .await
                .is_ok()
        })
        .await;
    });
}

#[test]
fn the_older_config_map_is_followed() {
    on_cluster(async |stage| {
        let service = "apiVersion: v1\nkind: Service\nmetadata:\n  annotations: {example.com/team: \
                       red}\nspec:\n  sessionAffinity: ClientIP\n";
        let data = json!({"template": OLDER, "serviceTemplate": service});
        let name = config_map_of_runner(&stage, &data).await;
        let flag = format!("--function-pod-template={name}");
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            &flag,
            "--scan-interval=1s",
        ];
        let runner = Runner::start(&stage, &flags).await;
        answers(&runner, &stage.image(COUNT)).await;
        let pod = only_pod(&stage).await;
        let maps: Api<ConfigMap> = config_maps_of_runner(&stage);
        let map = maps.get(&name).await.expect("it is there");
        assert_eq!(
            template_version(&pod),
            map.metadata.resource_version.as_deref()
        );
        assert_eq!(pod.annotations()["example.com/team"], "blue");
        let made = function_services(&stage).await.remove(0);
        assert_eq!(made.annotations()["example.com/team"], "red");
        let affinity = made.spec.and_then(|spec| spec.session_affinity);
        assert_eq!(affinity.as_deref(), Some("ClientIP"));

        let edited = OLDER.replace("team: blue", "team: green");
        let edit = Patch::Merge(json!({"data": {"template": edited}}));
        let edited = maps.patch(&name, &PatchParams::default(), &edit).await;
        edited.expect("the ConfigMap can be changed");
        eventually("a pod of the edited template alone", async || {
            answers(&runner, &stage.image(COUNT)).await;
            let pods = function_pods(&stage).await;
            pods.len() == 1 && pods[0].annotations()["example.com/team"] == "green"
        })
        .await;
    });
}

#[test]
fn reports_a_missing_template_config_map() {
    on_cluster(async |stage| {
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            "--function-pod-template=no-such-template",
        ];
        let runner = Runner::start(&stage, &flags).await;
        let mut client = connect(&runner.address()).expect("an address");
        let refused = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 1)).await;
        let refused = refused.expect_err("there is no template");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(
            refused
                .message()
                .contains("ConfigMap porch-system/no-such-template"),
            "{refused}"
        );
    });
}

#[test]
fn applies_the_overrides_of_a_function_config_to_the_pod() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let account = json!({"metadata": {"name": "functions"}});
        let account: ServiceAccount = serde_json::from_value(account).expect("an account");
        let made = stage.api().create(&PostParams::default(), &account).await;
        made.expect("the cluster takes the account");
        let map = json!({"metadata": {"name": "settings"}, "data": {"FROM_A_MAP": "yes"}});
        let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
        let made = stage.api().create(&PostParams::default(), &map).await;
        made.expect("the cluster takes the ConfigMap");
        let overrides = json!({"templateOverrides": {
            "serviceAccountName": "functions",
            "securityContext": {"runAsUser": 65532, "runAsGroup": 65532},
            "initContainer": {"resources": {"limits": {"memory": "32Mi"}}},
            "container": {
                "resources": {"requests": {"cpu": "11m"}, "limits": {"memory": "48Mi"}},
                "env": [{"name": "GIVEN", "value": "by the operator"}],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
            },
        }});
        configure_pods(&stage, "environment", overrides).await;

        let runner = Runner::start_with_announcements(&stage, &["--wrapper-injection=init"]).await;
        runner.serving().await;
        let seen = answers(&runner, &stage.image("functions/environment")).await;
        assert!(seen.contains("GIVEN=by the operator"), "{seen}");
        assert!(seen.contains("FROM_A_MAP=yes"), "{seen}");

        let pod = only_pod(&stage).await;
        let spec = pod.spec.as_ref().expect("a spec");
        assert_eq!(spec.service_account_name.as_deref(), Some("functions"));
        let context = spec.security_context.as_ref().expect("a context");
        assert_eq!(
            (context.run_as_user, context.run_as_group),
            (Some(65532), Some(65532))
        );
        let profile = context.seccomp_profile.as_ref().map(|it| &*it.type_);
        assert_eq!(
            profile,
            Some("RuntimeDefault"),
            "what is not overridden stays"
        );
        let limit = |name: &str| {
            let resources = container(&pod, name).resources.clone()?;
            Some(resources.limits?.remove("memory")?.0)
        };
        assert_eq!(limit("copy-wrapper-server").as_deref(), Some("32Mi"));
        assert_eq!(limit("function").as_deref(), Some("48Mi"));
    });
}
