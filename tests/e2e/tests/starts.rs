//! Pods that cannot start: callers get an error at once, with Kubernetes' own message.

use std::time::{Duration, Instant};

use e2e::{
    ANNOUNCE_FLAGS, Account, LIMIT, PodRejection, Runner, Stage, connect,
    delete_without_grace_period, evaluate, eventually, function_pods, on_cluster, resource_list,
    store_template,
};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::{
    core::v1::{ContainerStateWaiting, Pod, ResourceQuota},
    rbac::v1::Role,
};
use kube::{
    api::{DeleteParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use runner_core::{EvaluationError, Reason};
use serde_json::json;
use testbed::faults::Pace;

/// Time limit for the error after a pod shows that it cannot start.
const PROMPT: Duration = Duration::from_secs(5);

/// Calls until a call fails, and returns the error and its time.
///
/// A pod that was removed may answer one more call.
async fn failure(runner: &Runner, image: &str) -> (EvaluationError, Instant) {
    let mut client = connect(&runner.address()).expect("an address");
    let mut failed = None;
    eventually("a failed start", async || {
        let answer = evaluate(&mut client, image, resource_list(&[], 1)).await;
        failed = answer.err();
        failed.is_some()
    })
    .await;
    let status = failed.expect("it failed");
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
    (runner_proto::status::decode(&status), Instant::now())
}

/// Calls a function whose pod the API server refuses, and checks that the error comes promptly.
async fn refused_at_once(runner: &Runner, image: &str) -> EvaluationError {
    let begun = Instant::now();
    let (error, told) = failure(runner, image).await;
    assert!(told.duration_since(begun) < PROMPT, "{error}");
    assert_eq!(error.reason(), Reason::PodStartFailed, "{error}");
    error
}

/// Calls until there is an answer, because calls are rejected for a while after a failed start.
async fn answered_at_last(runner: &Runner, image: &str) {
    let mut client = connect(&runner.address()).expect("an address");
    eventually("an answer", async || {
        let answer = evaluate(&mut client, image, resource_list(&[], 1)).await;
        answer.is_ok()
    })
    .await;
}

/// Waits until `find` finds something in a function pod; returns it and the time.
async fn appearance<T>(stage: &Stage, find: impl Fn(&Pod) -> Option<T>) -> (T, Instant) {
    let labelled = watcher::Config::default().labels("fn.kpt.dev/image");
    let pods = watcher(stage.api::<Pod>(), labelled).applied_objects();
    let mut found = std::pin::pin!(pods.try_filter_map(async |pod| Ok(find(&pod))));
    let first = tokio::time::timeout(LIMIT, found.next()).await;
    let first = first.expect("it appears in time").expect("watches go on");
    (first.expect("pods can be watched"), Instant::now())
}

/// Returns the waiting state of a container of the pod, if its reason is one of these.
fn stuck(pod: &Pod, reasons: &[&str]) -> Option<ContainerStateWaiting> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.clone()?;
        let is_one = |reason: &String| reasons.contains(&reason.as_str());
        waiting
            .reason
            .as_ref()
            .is_some_and(is_one)
            .then_some(waiting)
    })
}

/// Calls a function whose pod cannot start for one of these reasons, and returns the error message.
async fn start_fails(stage: &Stage, runner: &Runner, image: &str, reasons: &[&str]) -> String {
    let ((error, told), (waiting, shown)) = tokio::join!(
        failure(runner, image),
        appearance(stage, |pod| stuck(pod, reasons)),
    );
    let after = told.saturating_duration_since(shown);
    assert!(after < PROMPT, "{after:?} after the pod showed it: {error}");
    assert_eq!(error.reason(), Reason::PodStartFailed, "{error}");
    let quoted = waiting.reason.expect("a reason");
    assert!(error.message().contains(&quoted), "{quoted} in {error}");
    let quoted = waiting.message.expect("a message");
    assert!(error.message().contains(&quoted), "{quoted} in {error}");
    error.message().to_owned()
}

#[test]
fn an_image_that_cannot_be_pulled_fails_the_call() {
    on_cluster(async |stage| {
        store_template(&stage, json!({}), json!({"imagePullPolicy": "Always"})).await;
        let pace = Pace {
            latency: Duration::ZERO,
            bytes_per_second: 50_000_000,
        };
        let registry = stage.bed().slow_registry(pace).expect("another registry");
        let image = format!("{}/functions/count:v1", registry.host());
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let mut client = connect(&runner.address()).expect("an address");
        let answer = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        answer.expect("the registry is there");
        // The runner has cached the image's metadata; the kubelet asks the registry again.
        drop(registry);
        for pod in function_pods(&stage).await {
            delete_without_grace_period(&stage, &pod).await;
        }
        start_fails(
            &stage,
            &runner,
            &image,
            &["ErrImagePull", "ImagePullBackOff"],
        )
        .await;
    });
}

#[test]
fn a_wrapper_image_that_does_not_exist_fails_the_call() {
    on_cluster(async |stage| {
        let missing = stage.image("no/such-wrapper");
        let wrapper = [("WRAPPER_SERVER_IMAGE", missing.as_str())];
        let flags = [
            ANNOUNCE_FLAGS[0],
            ANNOUNCE_FLAGS[1],
            "--wrapper-injection=init",
        ];
        let runner = Runner::start_in(&stage, &flags, &wrapper).await;
        let image = stage.image("functions/count");
        let says = start_fails(
            &stage,
            &runner,
            &image,
            &["ErrImagePull", "ImagePullBackOff"],
        )
        .await;
        assert!(says.contains("container copy-wrapper-server"), "{says}");
    });
}

#[test]
fn a_crash_loop_fails_the_call_with_the_last_lines_of_the_log() {
    on_cluster(async |stage| {
        let program = json!(["/bin/sh", "-c", "echo the wheel has come off >&2; exit 3"]);
        store_template(&stage, json!({}), json!({"command": program})).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let says = start_fails(&stage, &runner, &image, &["CrashLoopBackOff"]).await;
        assert!(says.contains("exit code 3"), "{says}");
        assert!(says.contains("the wheel has come off"), "{says}");
    });
}

#[test]
fn a_missing_program_fails_the_call_with_the_kubelets_message() {
    on_cluster(async |stage| {
        let program = json!(["/no/such/program"]);
        store_template(&stage, json!({}), json!({"command": program})).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let reasons = [
            "RunContainerError",
            "CreateContainerError",
            "CrashLoopBackOff",
        ];
        let says = start_fails(&stage, &runner, &image, &reasons).await;
        assert!(says.contains("/no/such/program"), "{says}");
    });
}

#[test]
fn an_unschedulable_pod_fails_the_call_with_the_schedulers_message() {
    on_cluster(async |stage| {
        let nowhere = json!({"nodeSelector": {"there": "is-no-such-node"}});
        store_template(&stage, nowhere, json!({})).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let ((error, told), (message, shown)) = tokio::join!(
            failure(&runner, &image),
            appearance(&stage, |pod| {
                let mut all = pod.status.as_ref()?.conditions.iter().flatten();
                let unschedulable =
                    all.find(|condition| condition.reason.as_deref() == Some("Unschedulable"))?;
                unschedulable.message.clone()
            }),
        );
        let after = told.saturating_duration_since(shown);
        assert!(after < PROMPT, "{after:?}: {error}");
        assert_eq!(error.reason(), Reason::PodStartFailed, "{error}");
        assert!(error.message().contains("Unschedulable"), "{error}");
        assert!(error.message().contains(&message), "{message} in {error}");
    });
}

#[test]
fn a_missing_permission_fails_the_call_at_once() {
    on_cluster(async |stage| {
        let account = Account::create(&stage).await;
        let roles = stage.api::<Role>();
        let mut role = roles.get("function-runner").await.expect("its role");
        for rule in role.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|it| it == "pods") {
                rule.verbs.retain(|verb| verb != "create");
            }
        }
        let options = PostParams::default();
        let replaced = roles.replace("function-runner", &options, &role).await;
        replaced.expect("the role can be changed");
        let kubeconfig = [("KUBECONFIG", account.kubeconfig())];
        let runner = Runner::start_in(&stage, &ANNOUNCE_FLAGS, &kubeconfig).await;
        let error = refused_at_once(&runner, &stage.image("functions/count")).await;
        let quoted = "cannot create resource \"pods\"";
        assert!(error.message().contains(quoted), "{error}");
    });
}

#[test]
fn a_quota_fails_the_call_at_once_until_it_is_deleted() {
    on_cluster(async |stage| {
        let quotas = stage.api::<ResourceQuota>();
        let none = json!({"metadata": {"name": "no-pods"}, "spec": {"hard": {"pods": "0"}}});
        let none = serde_json::from_value(none).expect("a quota");
        let made = quotas.create(&PostParams::default(), &none).await;
        made.expect("the cluster takes the quota");
        eventually("a quota in force", async || {
            let now = quotas.get("no-pods").await.expect("it is there");
            now.status.is_some_and(|status| status.hard.is_some())
        })
        .await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let error = refused_at_once(&runner, &image).await;
        assert!(
            error.message().contains("exceeded quota: no-pods"),
            "{error}"
        );

        let deleted = quotas.delete("no-pods", &DeleteParams::default()).await;
        deleted.expect("the quota can be deleted");
        answered_at_last(&runner, &image).await;
    });
}

#[test]
fn an_admission_policy_fails_the_call_at_once_until_it_is_deleted() {
    on_cluster(async |stage| {
        let rule = "this team's pods need a cost centre";
        let rejection = PodRejection::create(&stage, rule).await;
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let image = stage.image("functions/count");
        let error = refused_at_once(&runner, &image).await;
        assert!(error.message().contains(rule), "{error}");
        // Only the API server's own message contains the name of the policy.
        let policy = format!("ValidatingAdmissionPolicy '{}'", stage.namespace());
        assert!(error.message().contains(&policy), "{error}");
        assert!(function_pods(&stage).await.is_empty());

        rejection.remove().await;
        answered_at_last(&runner, &image).await;
    });
}
