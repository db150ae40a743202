//! `krm doctor` on a real cluster: sound installations, and installations with one fault each.

mod installation;

use e2e::{Runner, deployment::Deployment as Shipped, on_cluster};
use installation::{Installation, Report, patched};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, PodTemplate, Secret},
    networking::v1::NetworkPolicy,
    rbac::v1::Role,
};
use kube::{Api, api::DeleteParams};
use runner_cluster::objects::{FunctionConfig, ServiceTemplate};
use serde_json::{Value, json};

#[test]
fn reports_nothing_for_a_sound_installation() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let flags = ["--announce-address=198.18.255.254", "--announce-port=0"];
        let runner = Runner::start(&stage, &flags).await;
        let image = stage.image("functions/count");
        let address = runner.address();
        let report = installation
            .doctor(&["--address", &address, "--image", &image])
            .await;
        report.is_clean();
    });
}

#[test]
fn reports_nothing_for_the_shipped_overlay() {
    on_cluster(async |stage| {
        let deployment = Shipped::install(&stage, "overlays/dev", &[]).await;
        let (address, image) = (deployment.address().await, stage.image("functions/count"));
        let report = Report::of(
            &stage,
            &[
                &["--namespace", stage.namespace()][..],
                &["--runner-namespace", deployment.namespace()],
                &["--address", &address, "--image", &image],
            ]
            .concat(),
        )
        .await;
        report.is_clean();
    });
}

#[test]
fn reports_a_missing_namespace() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let report = installation.doctor(&["--namespace", "no-such-place"]).await;
        // The Deployment has another namespace, so there is a second finding.
        let finding = report.failed("namespaces");
        assert_eq!(finding.says, "there is no namespace no-such-place");
        assert!(
            finding
                .fix
                .contains("kubectl create namespace no-such-place"),
            "{finding:?}"
        );
        let mismatch = report.failed("runner");
        let fix = format!("krm doctor --namespace {}", stage.namespace());
        assert!(mismatch.fix.contains(&fix), "{mismatch:?}");
    });
}

#[test]
fn reports_a_service_account_that_may_not_create_pods() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let verbs = json!(["get", "list", "watch", "patch", "delete"]);
        let rules = json!({"op": "replace", "path": "/rules/0/verbs", "value": verbs});
        patched(&stage.api::<Role>(), "function-runner", &[rules]).await;
        let finding = installation.doctor(&[]).await.only_failure("permissions");
        let account = format!("service account {}/function-runner", stage.namespace());
        assert!(
            finding
                .says
                .starts_with(&format!("{account} may not create pods")),
            "{finding:?}"
        );
        assert!(
            finding
                .fix
                .contains("create role function-runner-pods-create --verb=create --resource=pods"),
            "{finding:?}"
        );
    });
}

#[test]
fn reports_a_service_account_that_may_not_list_function_configs() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let rules = json!({"op": "replace", "path": "/rules/4/verbs", "value": ["get", "patch"]});
        patched(&stage.api::<Role>(), "function-runner", &[rules]).await;
        let report = installation.doctor(&[]).await;
        let finding = report.only_failure("permissions");
        assert!(
            finding
                .says
                .contains("may not list, watch functionconfigs.config.porch.kpt.dev"),
            "{finding:?}"
        );
        assert!(finding.fix.contains("--verb=list,watch"), "{finding:?}");
    });
}

#[test]
fn reports_a_template_without_a_function_container() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let template = json!({
            "metadata": {"name": "base-pod-template"},
            "template": {"spec": {"containers": [{"name": "main", "image": "example.com/x:v1"}]}},
        });
        installation.put::<PodTemplate>(template).await;
        let finding = installation.doctor(&[]).await.only_failure("templates");
        assert!(
            finding
                .says
                .contains("exactly one container named \"function\", it has 0"),
            "{finding:?}"
        );
        let edit = format!(
            "kubectl -n {} edit podtemplate base-pod-template",
            stage.namespace()
        );
        assert!(finding.fix.contains(&edit), "{finding:?}");
    });
}

#[test]
fn reports_a_service_template_with_a_wrong_target_port() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let template = json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "ServiceTemplate",
            "metadata": {"name": "base-service-template"},
            "template": {"spec": {"ports": [{"port": 9446, "targetPort": 8080}]}},
        });
        installation.put::<ServiceTemplate>(template).await;
        let finding = installation.doctor(&[]).await.only_failure("templates");
        assert!(
            finding.says.contains("targetPort must be 9446"),
            "{finding:?}"
        );
        assert!(finding.fix.contains("base-service-template"), "{finding:?}");
    });
}

#[test]
fn reports_a_missing_wrapper_image() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let image = stage.image("no-such-wrapper");
        installation.set_wrapper(Some(&image)).await;
        let finding = installation.doctor(&[]).await.only_failure("wrapper-image");
        assert!(
            finding.says.contains(&image) && finding.says.contains("not found"),
            "{finding:?}"
        );
        assert!(
            finding.fix.contains("WRAPPER_SERVER_IMAGE=IMAGE"),
            "{finding:?}"
        );
    });
}

#[test]
fn reports_a_deployment_without_a_wrapper_image() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        installation.set_wrapper(None).await;
        let finding = installation.doctor(&[]).await.only_failure("runner");
        assert!(
            finding.says.contains("does not set WRAPPER_SERVER_IMAGE"),
            "{finding:?}"
        );
        let set = "set env deployment/function-runner WRAPPER_SERVER_IMAGE=";
        assert!(finding.fix.contains(set), "{finding:?}");
    });
}

#[test]
fn reports_a_pull_secret_of_the_wrong_type() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        installation.enable_private_registries().await;
        let secret = json!({"metadata": {"name": "auth-secret"}, "stringData": {"user": "x"}});
        installation.put::<Secret>(secret).await;
        let finding = installation
            .doctor(&[])
            .await
            .only_failure("registry-credentials");
        assert!(finding.says.contains("is of type Opaque"), "{finding:?}");
        assert!(
            finding
                .fix
                .contains("create secret docker-registry auth-secret"),
            "{finding:?}"
        );
    });
}

#[test]
fn reports_a_registry_that_refuses_the_password() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        installation.enable_private_registries().await;
        let registry = stage.bed().private_registry();
        stage
            .pull_secret("auth-secret", &registry.user, "wrong")
            .await;
        let image = format!("{}/functions/count:v1", registry.host);
        let ca = registry.ca.to_str().expect("a path in UTF-8");
        let asked = ["--image", &image, "--tls-secret-path", ca];
        let report = installation.doctor(&asked).await;
        let finding = report.only_failure("registry-credentials");
        assert!(finding.says.contains("refused access"), "{finding:?}");
        assert!(!report.text.contains("wrong\""), "no password is repeated");
        let fix = format!("the right user and password for {}", registry.host);
        assert!(finding.fix.contains(&fix), "{finding:?}");

        stage
            .api::<Secret>()
            .delete("auth-secret", &DeleteParams::default())
            .await
            .expect("gone");
        stage
            .pull_secret("auth-secret", &registry.user, &registry.password)
            .await;
        let report = installation.doctor(&asked).await;
        assert_eq!(report.code, 0, "{report:#?}");
        assert!(
            report.says("registry-credentials").contains("accepts"),
            "{report:#?}"
        );
    });
}

#[test]
fn reports_a_function_config_with_an_error() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let object = json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "FunctionConfig",
            "metadata": {"name": "broken"},
            "spec": {"image": "broken", "binaryExecutor": {"path": "/no/such/file", "tags": ["v1"]}},
        });
        installation.put::<FunctionConfig>(object).await;
        // The runner detects the error.
        let _runner = Runner::start(&stage, &[]).await;
        installation.acted_on("broken").await;
        let finding = installation
            .doctor(&[])
            .await
            .only_failure("function-configs");
        assert!(finding.says.contains("/no/such/file"), "{finding:?}");
        let edit = format!(
            "kubectl -n {} edit functionconfig broken",
            stage.namespace()
        );
        assert_eq!(finding.fix, edit);
    });
}

#[test]
fn reports_a_namespace_that_does_not_admit_function_pods() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let namespaces: Api<Namespace> = Api::all(stage.client());
        let label = json!({
            "op": "add",
            "path": "/metadata/labels/pod-security.kubernetes.io~1enforce",
            "value": "restricted",
        });
        patched(&namespaces, stage.namespace(), &[label]).await;
        let finding = installation.doctor(&[]).await.only_failure("pod-security");
        assert!(
            finding.says.contains("violates PodSecurity \"restricted"),
            "{finding:?}"
        );
        let relax = format!(
            "kubectl label namespace {} pod-security.kubernetes.io/enforce=baseline",
            stage.namespace()
        );
        assert!(finding.fix.contains(&relax), "{finding:?}");
    });
}

#[test]
fn reports_a_network_policy_that_blocks_the_runner() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let closed = json!([{"op": "replace", "path": "/spec/ingress", "value": []}]);
        let closed: Vec<Value> = serde_json::from_value(closed).expect("a patch");
        patched(&stage.api::<NetworkPolicy>(), "functions", &closed).await;
        let finding = installation
            .doctor(&[])
            .await
            .only_failure("network-policies");
        assert!(
            finding.says.contains("NetworkPolicy functions"),
            "{finding:?}"
        );
        assert!(finding.says.contains("port 9446"), "{finding:?}");
        assert!(
            finding
                .fix
                .contains("edit networkpolicy functions: add to spec.ingress"),
            "{finding:?}"
        );
    });
}

#[test]
fn reports_a_runner_that_is_scaled_to_zero() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let none = json!({"op": "replace", "path": "/spec/replicas", "value": 0});
        patched(&stage.api::<Deployment>(), "function-runner", &[none]).await;
        let finding = installation.doctor(&[]).await.only_failure("runner");
        assert!(finding.says.ends_with("is scaled to 0"), "{finding:?}");
        assert!(
            finding
                .fix
                .contains("scale deployment/function-runner --replicas=2"),
            "{finding:?}"
        );
    });
}

#[test]
fn reports_an_address_without_a_runner() {
    on_cluster(async |stage| {
        let installation = Installation::create(&stage).await;
        let report = installation.doctor(&["--address", "127.0.0.1:1"]).await;
        let finding = report.only_failure("evaluation");
        assert!(finding.says.contains("127.0.0.1:1"), "{finding:?}");
        assert!(finding.fix.contains("--address"), "{finding:?}");
    });
}
