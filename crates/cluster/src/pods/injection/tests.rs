use std::sync::atomic::{AtomicUsize, Ordering};

use runner_test_support::ApiRequests;
use serde_json::{Value, json};

use super::*;
use crate::testing::{client, refuse};

fn injector(
    policy: InjectionPolicy,
    answer: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (Injector, ApiRequests) {
    let (client, requests) = client(answer);
    let render = RenderOptions {
        wrapper_image: "example.com/wrapper:v1".to_owned(),
        ..RenderOptions::default()
    };
    let cluster = Cluster::new(client, "fns");
    (Injector::new(policy, cluster, Arc::new(render)), requests)
}

fn accepted(with_image: bool) -> Option<(u16, Value)> {
    let volume = match with_image {
        true => json!({"name": "wrapper-server-tools", "image": {"reference": "w"}}),
        false => json!({"name": "wrapper-server-tools", "emptyDir": {}}),
    };
    let spec = json!({"containers": [], "volumes": [volume]});
    Some((201, json!({"metadata": {}, "spec": spec})))
}

fn failure(reason: &str, message: &str) -> PodFailure {
    PodFailure {
        reason: reason.into(),
        message: message.into(),
    }
}

fn reason(injector: &Injector) -> InjectionReason {
    injector.status().unwrap().reason
}

#[tokio::test]
async fn takes_an_image_volume_where_the_api_server_accepts_one() {
    let (injector, requests) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    let templates = Templates::built_in();
    assert_eq!(injector.choose(&templates).await, Injection::Image);
    assert_eq!(injector.choose(&templates).await, Injection::Image);
    assert_eq!(reason(&injector), InjectionReason::Supported);
    let requests = requests.all();
    let [(method, path, _)] = &requests[..] else {
        panic!("requests once: {requests:?}")
    };
    assert_eq!(method, "POST");
    assert!(path.contains("dryRun=All"), "{path}");
}

#[tokio::test]
async fn takes_a_container_where_image_volumes_are_refused_or_dropped() {
    let templates = Templates::built_in();
    let requests = AtomicUsize::new(0);
    let (refusing, _) = injector(InjectionPolicy::Auto, move |_, _| {
        match requests.fetch_add(1, Ordering::Relaxed) {
            0 => refuse(422, "spec.volumes[0]: must specify a volume type"),
            _ => accepted(false),
        }
    });
    assert_eq!(refusing.choose(&templates).await, Injection::Container);
    let status = refusing.status().unwrap();
    assert_eq!(status.reason, InjectionReason::Refused);
    assert!(status.detail.contains("must specify a volume type"));
    let (dropping, _) = injector(InjectionPolicy::Auto, |_, _| accepted(false));
    assert_eq!(dropping.choose(&templates).await, Injection::Container);
    assert_eq!(reason(&dropping), InjectionReason::Refused);
}

#[tokio::test]
async fn reports_unknown_if_every_pod_is_refused() {
    let (injector, _) = injector(InjectionPolicy::Auto, |_, _| refuse(403, "exceeded quota"));
    let injection = injector.choose(&Templates::built_in()).await;
    assert_eq!(injection, Injection::Container);
    assert_eq!(reason(&injector), InjectionReason::Unknown);
}

#[tokio::test]
async fn uses_a_template_of_the_users_own_as_it_is_written() {
    let (injector, requests) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    let mut templates = Templates::built_in();
    let spec = templates.pod.spec.as_mut().unwrap();
    spec.priority_class_name = Some("low".to_owned());
    assert_eq!(injector.choose(&templates).await, Injection::Init);
    assert_eq!(reason(&injector), InjectionReason::Template);
    assert!(requests.all().is_empty());
    let cannot_create = failure("CreateContainerError", "mkdir");
    assert!(!injector.record_failure(Injection::Image, &cannot_create));
}

#[tokio::test]
async fn takes_the_next_injection_after_a_pod_that_failed_because_of_its_injection() {
    let (injector, _) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    let templates = Templates::built_in();
    injector.choose(&templates).await;
    let cannot_pull = failure("ImagePullBackOff", "not found");
    assert!(!injector.record_failure(Injection::Image, &cannot_pull));
    let cannot_mount = failure("CreateContainerError", "failed to mkdir \"\"");
    assert!(injector.record_failure(Injection::Image, &cannot_mount));
    assert_eq!(injector.choose(&templates).await, Injection::Container);
    let status = injector.status().unwrap();
    assert_eq!(status.reason, InjectionReason::Failed);
    assert!(status.detail.contains("an image volume"), "{status:?}");
    assert!(status.detail.contains("failed to mkdir"), "{status:?}");
    let of_function = failure("RunContainerError", "exec format error");
    assert!(!injector.record_failure(Injection::Container, &of_function));
    let of_copying = failure("PostStartHookError", "container copy-wrapper-server: cp");
    assert!(injector.record_failure(Injection::Container, &of_copying));
    assert_eq!(injector.choose(&templates).await, Injection::Init);
    assert!(!injector.record_failure(Injection::Init, &of_copying));
}

#[tokio::test]
async fn takes_the_next_injection_after_a_pod_that_its_node_did_not_start() {
    let (injector, _) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    let templates = Templates::built_in();
    injector.choose(&templates).await;
    assert!(!injector.record_stuck(Injection::Container));
    assert!(injector.record_stuck(Injection::Image));
    assert_eq!(injector.choose(&templates).await, Injection::Container);
}

#[tokio::test]
async fn repeats_dry_runs_when_the_api_server_refuses_a_pod() {
    let requests = AtomicUsize::new(0);
    let (injector, _) = injector(InjectionPolicy::Auto, move |_, _| {
        accepted(requests.fetch_add(1, Ordering::Relaxed) == 0)
    });
    let templates = Templates::built_in();
    assert_eq!(injector.choose(&templates).await, Injection::Image);
    let instead = injector.alternative_to(Injection::Image, &templates).await;
    assert_eq!(instead, Some(Injection::Container));
    let instead = injector
        .alternative_to(Injection::Container, &templates)
        .await;
    assert_eq!(instead, None);
}

#[tokio::test]
async fn takes_an_init_container_where_a_policy_refuses_the_container_beside() {
    let requests = AtomicUsize::new(0);
    let (injector, _) = injector(InjectionPolicy::Auto, move |_, _| {
        match requests.fetch_add(1, Ordering::Relaxed) {
            // The policy is added after the first pod.
            0 | 1 => accepted(false),
            2 | 3 => refuse(403, "containers need a readiness probe"),
            _ => accepted(false),
        }
    });
    let templates = Templates::built_in();
    assert_eq!(injector.choose(&templates).await, Injection::Container);
    let instead = injector
        .alternative_to(Injection::Container, &templates)
        .await;
    assert_eq!(instead, Some(Injection::Init));
    let status = injector.status().unwrap();
    assert_eq!(status.reason, InjectionReason::Refused);
    assert!(
        status.detail.contains("need a readiness probe"),
        "{status:?}"
    );
}

#[tokio::test]
async fn counts_an_empty_image_volume_as_a_failure_of_the_injection() {
    let (injector, _) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    injector.choose(&Templates::built_in()).await;
    let ended = failure("CrashLoopBackOff", "back-off 10s; Error, exit code 1: oh");
    assert!(!injector.record_failure(Injection::Image, &ended));
    let not_there = "back-off 10s; StartError, exit code 128: failed to create containerd task: \
                     exec: \"/wrapper-server-tools/home/nonroot/wrapper-server/wrapper-server\": \
                     no such file or directory";
    let never_ran = failure("CrashLoopBackOff", not_there);
    assert!(injector.record_failure(Injection::Image, &never_ran));
}

#[tokio::test]
async fn keeps_image_volumes_after_a_failure_of_the_functions_own() {
    let (injector, _) = injector(InjectionPolicy::Auto, |_, _| accepted(true));
    let templates = Templates::built_in();
    injector.choose(&templates).await;
    for (reason, message) in [
        (
            "CreateContainerError",
            "failed to generate spec: unable to find user app: no matching entries in passwd file",
        ),
        ("CreateContainerError", "context deadline exceeded"),
        (
            "RunContainerError",
            "runc create failed: container init was OOM-killed (memory limit too low?)",
        ),
        (
            "CrashLoopBackOff",
            "back-off 10s; StartError, exit code 128: chdir to cwd (\"/app\"): permission denied",
        ),
    ] {
        let of_function = failure(reason, message);
        assert!(
            !injector.record_failure(Injection::Image, &of_function),
            "{message}"
        );
    }
    assert_eq!(injector.choose(&templates).await, Injection::Image);
}

#[tokio::test]
async fn never_changes_the_injection_that_the_flag_names() {
    let policy = InjectionPolicy::Fixed(Injection::Image);
    let (injector, requests) = injector(policy, |_, _| accepted(false));
    let templates = Templates::built_in();
    assert_eq!(injector.choose(&templates).await, Injection::Image);
    assert_eq!(reason(&injector), InjectionReason::Flag);
    assert!(!injector.record_failure(Injection::Image, &failure("CreateContainerError", "")));
    assert_eq!(
        injector.alternative_to(Injection::Image, &templates).await,
        None
    );
    assert!(requests.all().is_empty());
}
