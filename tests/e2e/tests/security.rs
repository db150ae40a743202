//! The permissions that the runner needs, and the restrictions of functions in their pods.

use e2e::{
    ANNOUNCE_FLAGS, Account, Runner, Stage, config_map_of_runner, configure_pods, connect,
    evaluate, eventually, function_pods, function_services, install_definitions, on_cluster,
    resource_list,
};
use k8s_openapi::api::core::v1::{Container, Pod, PodTemplate, Secret};
use runner_cluster::objects::{FunctionConfig, ServiceTemplate};
use serde_json::json;

/// Starts a runner with the permissions of this account.
async fn runner_as(stage: &Stage, account: &Account, flags: &[&str]) -> Runner {
    let flags = [&ANNOUNCE_FLAGS, flags].concat();
    let runner = Runner::start_in(stage, &flags, &[("KUBECONFIG", account.kubeconfig())]).await;
    runner.serving().await;
    runner
}

async fn answers(runner: &Runner, image: &str) -> String {
    let mut client = connect(&runner.address()).expect("an address");
    let answer = evaluate(&mut client, image, resource_list(&[], 3)).await;
    let answer = answer.expect("the function answers");
    String::from_utf8_lossy(&answer.log).into_owned()
}

fn was_refused_nothing(runner: &Runner) {
    let log = runner.log();
    let refused: Vec<_> = log
        .lines()
        .filter(|line| line.contains("forbidden") || line.contains("Forbidden"))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn the_permissions_of_an_installation_are_enough() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let account = Account::create(&stage).await;
        configure_pods(&stage, "count", json!({"timeToLive": "3s"})).await;

        let flags = ["--scan-interval=1s", "--warm-up-pod-cache=false"];
        let runner = runner_as(&stage, &account, &flags).await;
        answers(&runner, &stage.image("functions/count")).await;

        let templates = stage.api::<PodTemplate>();
        let stored = templates.get_opt("base-pod-template").await;
        assert!(matches!(stored, Ok(Some(_))), "{stored:?}");
        let templates = stage.api::<ServiceTemplate>();
        let stored = templates.get_opt("base-service-template").await;
        assert!(matches!(stored, Ok(Some(_))), "{stored:?}");
        let configs = stage.api::<FunctionConfig>();
        eventually("the status of the object", async || {
            let object = configs.get("count").await.expect("it is there");
            let status = object.status.unwrap_or_default();
            status.function_runner_observed_generation == object.metadata.generation
                && status.error.is_none()
        })
        .await;
        assert_eq!(function_services(&stage).await.len(), 1);
        eventually("neither pod nor service", async || {
            function_pods(&stage).await.is_empty() && function_services(&stage).await.is_empty()
        })
        .await;
        was_refused_nothing(&runner);
    });
}

#[test]
fn the_permissions_of_an_installation_are_enough_for_private_registries() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let account = Account::create(&stage).await;
        let private = stage.bed().private_registry();
        let authority = tempfile::tempdir().expect("a directory");
        std::fs::copy(&private.ca, authority.path().join("ca.crt")).expect("it can be copied");
        let flags = [
            "--enable-private-registries".to_owned(),
            format!(
                "--registry-auth-secret-path={}",
                private.docker_config.display()
            ),
            "--enable-private-registries-tls".to_owned(),
            format!("--tls-secret-path={}", authority.path().display()),
        ];
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let runner = runner_as(&stage, &account, &flags).await;
        answers(&runner, &format!("{}/functions/count:v1", private.host)).await;
        let secret = stage.api::<Secret>().get_opt("auth-secret").await;
        assert!(matches!(secret, Ok(Some(_))), "{secret:?}");
        was_refused_nothing(&runner);
    });
}

#[test]
fn the_permissions_of_an_installation_are_enough_for_a_template_in_a_config_map() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let account = Account::create(&stage).await;
        let template = include_str!("../fixtures/older-pod-template.yaml");
        let name = config_map_of_runner(&stage, &json!({"template": template})).await;
        account.allow_to_read(&stage, &name).await;
        let flag = format!("--function-pod-template={name}");
        let runner = runner_as(&stage, &account, &[&flag]).await;
        answers(&runner, &stage.image("functions/count")).await;
        was_refused_nothing(&runner);
    });
}

#[test]
fn logs_missing_permissions_once() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let account = Account::create(&stage).await;
        // The permissions are for another namespace than that of the flag.
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            "--pod-namespace=default",
        ];
        let environment = [("KUBECONFIG", account.kubeconfig())];
        let runner = Runner::start_in(&stage, &flags, &environment).await;
        eventually("the refusal in the log", async || {
            runner.log().contains("cannot watch pods")
        })
        .await;
        let refused = runner.log();
        let refused = refused
            .lines()
            .filter(|line| line.contains("cannot watch pods"));
        assert_eq!(refused.count(), 1);
    });
}

/// Returns the value of a line of `/proc/self/status`.
fn kernel_says<'a>(log: &'a str, key: &str) -> &'a str {
    let line = log.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key} in {log}")).trim()
}

#[test]
fn a_function_gets_no_secrets_and_no_privileges() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let seen = answers(&runner, &stage.image("functions/environment")).await;
        assert!(seen.contains("PATH="), "it shows its environment: {seen}");
        let pod = function_pods(&stage).await.remove(0);
        let token = variable(function(&pod), "KRM_WRAPPER_TOKEN");
        let address = variable(function(&pod), "KRM_WRAPPER_RUNNER");
        for secret in ["KRM_WRAPPER", &*token, &*address] {
            assert!(!seen.contains(secret), "{secret} is in {seen}");
        }
        assert!(
            seen.contains("/proc/1/environ': Permission denied"),
            "the wrapper's own environment is closed: {seen}"
        );
        assert!(
            seen.contains("/var/run/secrets/kubernetes.io: No such file"),
            "{seen}"
        );
        assert_eq!(kernel_says(&seen, "NoNewPrivs:"), "1");
        assert_eq!(kernel_says(&seen, "CapEff:"), "0000000000000000");
        assert_eq!(kernel_says(&seen, "CapBnd:"), "0000000000000000");
        assert_eq!(kernel_says(&seen, "Seccomp:"), "2");
    });
}

#[test]
fn a_pod_is_hardened_where_its_template_sets_nothing() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        answers(&runner, &stage.image("functions/count")).await;
        let pod = function_pods(&stage).await.remove(0);
        let spec = pod.spec.as_ref().expect("a spec");
        assert_eq!(spec.automount_service_account_token, Some(false));
        let volumes = spec.volumes.iter().flatten();
        assert_eq!(
            volumes.map(|volume| &*volume.name).collect::<Vec<_>>(),
            ["wrapper-server-tools"],
            "no token is mounted"
        );
        let context = spec.security_context.as_ref().expect("a context");
        let profile = context.seccomp_profile.as_ref().expect("a profile");
        assert_eq!(profile.type_, "RuntimeDefault");
        for container in spec
            .init_containers
            .iter()
            .flatten()
            .chain(&spec.containers)
        {
            let context = container.security_context.as_ref().expect("a context");
            assert_eq!(context.allow_privilege_escalation, Some(false));
            assert_ne!(context.privileged, Some(true));
            let capabilities = context.capabilities.as_ref().expect("capabilities");
            assert_eq!(capabilities.drop, Some(vec!["ALL".to_owned()]));
            assert_eq!(capabilities.add, None);
        }
    });
}

fn function(pod: &Pod) -> &Container {
    let containers = &pod.spec.as_ref().expect("a spec").containers;
    let function = containers.iter().find(|known| known.name == "function");
    function.expect("a function container")
}

fn variable(container: &Container, name: &str) -> String {
    let all = container.env.iter().flatten();
    let found = all.filter(|variable| variable.name == name);
    let value = found.filter_map(|variable| variable.value.clone()).next();
    value.unwrap_or_else(|| panic!("no {name}"))
}
