//! Reports the injection of the wrapper: the one that the runner uses, or the one that a new runner
//! would choose if no runner answers.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use runner_cluster::{
    Cluster, Injection, InjectionPolicy, InjectionReason, InjectionStatus, Injector, RenderOptions,
};

use super::templates;
use crate::{context::Context, outcome::Outcome};

/// Image for dry runs, used if the Deployment names none.
///
/// Nothing is pulled.
const ANY_IMAGE: &str = "example.com/krm-doctor/wrapper-server:v1";

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        if let Some(why) = context.pod_runtime_off() {
            return vec![Outcome::skipped(why)];
        }
        if let Some((injection, reason)) = in_use(context).await {
            return vec![Outcome::ok(format!("{injection}, in use: {reason}"))];
        }
        vec![match chosen(context).await {
            None => Outcome::skipped("no valid template exists"),
            Some(status) => judge(status),
        }]
    }
    .boxed()
}

fn judge(status: &InjectionStatus) -> Outcome {
    let finding = format!("{}, by dry run: {}", status.injection, status.detail);
    match status.reason {
        InjectionReason::Unknown => Outcome::warning(
            finding,
            "check what refuses the dry run of a pod, or set --wrapper-injection at the runner",
        ),
        _ => Outcome::ok(finding),
    }
}

/// Returns the injection of new pods, if it can be determined.
pub(super) async fn injection(context: &Context) -> Option<Injection> {
    match in_use(context).await {
        Some((injection, _)) => Some(injection),
        None => chosen(context).await.map(|status| status.injection),
    }
}

/// Returns the injection that the runner reports, with its reason.
///
/// Returns `None` if no runner answers or the runner has not chosen yet.
async fn in_use(context: &Context) -> Option<(Injection, &str)> {
    let pods = context.report().await?.pod.as_ref()?;
    let injection = named(&pods.wrapper_injection)?;
    Some((injection, &pods.wrapper_injection_reason))
}

/// Returns the choice of a runner that has not started any pod yet, or `None` if no template can be
/// used.
async fn chosen(context: &Context) -> Option<&InjectionStatus> {
    let choose = || async {
        let templates = templates::read(context).await.ok()?;
        let flag = context.flag("wrapper-injection").unwrap_or_default();
        let policy = named(&flag).map_or(InjectionPolicy::Auto, InjectionPolicy::Fixed);
        let cluster = Cluster::new(context.client.clone(), &context.options.namespace);
        let injector = Injector::new(policy, cluster, Arc::new(options(context)));
        injector.choose(&templates).await;
        injector.status()
    };
    context.injection.get_or_init(choose).await.as_ref()
}

fn named(name: &str) -> Option<Injection> {
    [Injection::Init, Injection::Container, Injection::Image]
        .into_iter()
        .find(|injection| injection.to_string() == name)
}

/// Returns the options that the runner's pods are made with.
pub(super) fn options(context: &Context) -> RenderOptions {
    RenderOptions {
        wrapper_image: context
            .wrapper_image()
            .unwrap_or_else(|| ANY_IMAGE.to_owned()),
        max_request_body_size: context.max_request_body_size(),
        ..RenderOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use runner_proto::runner_status::{GetStatusResponse, PodRuntime};
    use runner_test_support::{BackgroundServer, status_server};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        State,
        checks::{
            pod_security,
            testing::{run_check, run_checks},
        },
    };

    /// Starts a runner that reports this injection.
    fn runner(injection: &str) -> BackgroundServer {
        let pod = PodRuntime {
            wrapper_injection: injection.to_owned(),
            wrapper_injection_reason: "a node cannot mount images".to_owned(),
            ..PodRuntime::default()
        };
        let status = GetStatusResponse {
            pod: Some(pod),
            ..GetStatusResponse::default()
        };
        status_server(([127, 0, 0, 1], 0).into(), status)
    }

    fn mounts_images(path: &str) -> (u16, Value) {
        match path {
            path if path.ends_with("/pods") => (
                200,
                json!({"metadata": {}, "spec": {"containers": [], "volumes": [
                    {"name": "wrapper-server-tools", "image": {"reference": "w"}},
                ]}}),
            ),
            _ => (404, Value::Null),
        }
    }

    #[tokio::test]
    async fn reports_the_injection_and_its_reason() {
        let findings = run_check(check, mounts_images).await;
        assert_eq!(
            findings,
            [Outcome::ok(
                "image, by dry run: the API server accepts image volumes"
            )]
        );
        let refuses_everything = |path: &str| match path {
            path if path.ends_with("/pods") => (403, Value::Null),
            _ => (404, Value::Null),
        };
        let findings = run_check(check, refuses_everything).await;
        assert_eq!(findings[0].state, State::Warning);
        let finding = &findings[0].finding;
        assert!(finding.starts_with("container, by dry run: "), "{finding}");
    }

    #[tokio::test]
    async fn reports_the_injection_that_a_runner_uses() {
        let runner = runner("container");
        let address = runner.address().to_string();
        let findings = run_checks(&[check], Some(&address), mounts_images).await;
        assert_eq!(
            findings,
            [Outcome::ok("container, in use: a node cannot mount images")]
        );
    }

    #[tokio::test]
    async fn makes_dry_runs_if_the_runner_has_not_chosen_or_does_not_answer() {
        let runner = runner("");
        let not_chosen = runner.address().to_string();
        for address in [&*not_chosen, "127.0.0.1:1"] {
            let findings = run_checks(&[check], Some(address), mounts_images).await;
            assert!(findings[0].finding.starts_with("image, by dry run"));
        }
    }

    #[tokio::test]
    async fn chooses_once_for_all_checks() {
        let dry_runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dry_runs);
        let answer = move |path: &str| {
            if path.ends_with("/pods") {
                count.fetch_add(1, Ordering::Relaxed);
            }
            mounts_images(path)
        };
        let findings = run_checks(&[check, pod_security::check], None, answer).await;
        assert!(
            findings.iter().all(|it| it.state == State::Ok),
            "{findings:?}"
        );
        // One dry run for the choice, and one by the check that a pod is admitted.
        assert_eq!(dry_runs.load(Ordering::Relaxed), 2);
    }
}
