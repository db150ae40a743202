//! Checks that the runner's Deployment exists, is ready and is configured completely.

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{Api, api::ListParams};
use runner_core::defaults;

use super::selectors::Labels;
use crate::{context::Context, outcome::Outcome};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let options = &context.options;
        let (namespace, name) = (&options.runner_namespace, &options.runner_deployment);
        let deployment = match &context.deployment {
            Ok(Some(deployment)) => deployment,
            Ok(None) => {
                return vec![Outcome::failed(
                    format!("there is no Deployment {namespace}/{name}"),
                    "kubectl apply -k deploy/base, or name the Deployment with --runner-deployment \
                     and --runner-namespace",
                )];
            }
            Err(error) => return vec![Outcome::unreadable("the runner's Deployment", error)],
        };
        let mut wrong: Vec<Outcome> = [
            replicas(namespace, name, deployment),
            wrapper(context),
            pod_namespace(context),
        ]
        .into_iter()
        .flatten()
        .collect();
        wrong.extend(service(context, deployment).await);
        if wrong.is_empty() {
            let ready = ready(deployment);
            let finding = format!("{namespace}/{name} has {ready} ready");
            return vec![Outcome::ok(match context.pod_runtime_off() {
                Some(why) => format!("{finding}; {why}: only executables are served"),
                None => finding,
            })];
        }
        wrong
    }
    .boxed()
}

fn ready(deployment: &Deployment) -> i32 {
    let status = deployment.status.as_ref();
    status.and_then(|it| it.ready_replicas).unwrap_or_default()
}

fn replicas(namespace: &str, name: &str, deployment: &Deployment) -> Option<Outcome> {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|it| it.replicas)
        .unwrap_or(1);
    let ready = ready(deployment);
    if wanted == 0 {
        return Some(Outcome::failed(
            format!("{namespace}/{name} is scaled to 0"),
            format!("kubectl -n {namespace} scale deployment/{name} --replicas=2"),
        ));
    }
    if ready >= wanted {
        return None;
    }
    let conditions = deployment
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let why = conditions
        .filter(|it| match it.type_.as_str() {
            "ReplicaFailure" => it.status == "True",
            _ => it.status == "False",
        })
        .filter_map(|it| it.message.clone())
        .collect::<Vec<_>>();
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(": {}", why.join("; "))
    };
    let finding = format!("{ready} of {wanted} replicas of {namespace}/{name} are ready{why}");
    let fix = format!(
        "kubectl -n {namespace} describe pods, and kubectl -n {namespace} logs deployment/{name}"
    );
    Some(if ready == 0 {
        Outcome::failed(finding, fix)
    } else {
        Outcome::warning(finding, fix)
    })
}

fn wrapper(context: &Context) -> Option<Outcome> {
    let flag = context.pod_flag().filter(|_| context.uses_pods())?;
    if !context.lacks_wrapper_image() {
        return None;
    }
    let (namespace, name) = (
        &context.options.runner_namespace,
        &context.options.runner_deployment,
    );
    Some(Outcome::failed(
        format!(
            "{namespace}/{name} does not set WRAPPER_SERVER_IMAGE, which the pod runtime needs: \
             with --{flag} the runner does not start"
        ),
        format!(
            "kubectl -n {namespace} set env deployment/{name} \
             WRAPPER_SERVER_IMAGE=ghcr.io/krm-function-runner/wrapper-server:v{}, or remove the \
             flags of the pod runtime",
            env!("CARGO_PKG_VERSION")
        ),
    ))
}

fn pod_namespace(context: &Context) -> Option<Outcome> {
    let examined = &context.options.namespace;
    let used = context.flag("pod-namespace");
    let used = used.unwrap_or_else(|| defaults::POD_NAMESPACE.to_owned());
    (used != *examined && context.uses_pods()).then(|| {
        Outcome::failed(
            format!("the runner keeps its pods in {used}, but {examined} is examined"),
            format!(
                "krm doctor --namespace {used}, or start the runner with --pod-namespace={examined}"
            ),
        )
    })
}

async fn service(context: &Context, deployment: &Deployment) -> Option<Outcome> {
    let (namespace, name) = (
        &context.options.runner_namespace,
        &context.options.runner_deployment,
    );
    let port = context
        .flag("port")
        .and_then(|it| it.parse().ok())
        .unwrap_or(i32::from(defaults::RUNNER_PORT));
    let services: Api<Service> = Api::namespaced(context.client.clone(), namespace);
    let services = match services.list(&ListParams::default()).await {
        Ok(services) => services,
        Err(error) => return Some(Outcome::unreadable("the runner's Service", &error)),
    };
    let labels = pod_labels(deployment);
    let expose = format!("kubectl -n {namespace} expose deployment/{name} --port={port}");
    let mut leading = services
        .iter()
        .filter(|it| leads_to(it, &labels))
        .peekable();
    if leading.peek().is_none() {
        return Some(Outcome::failed(
            format!("no Service of {namespace} leads to {name}: Porch cannot find the runner"),
            expose,
        ));
    }
    let has_port = leading.any(|it| {
        let ports = it.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        ports.into_iter().any(|known| known.port == port)
    });
    (!has_port).then(|| {
        Outcome::warning(
            format!("no Service of {namespace} that leads to {name} has port {port}"),
            format!("add the port, or: {expose} --name={name}-grpc"),
        )
    })
}

fn leads_to(service: &Service, labels: &Labels) -> bool {
    let selector = service.spec.as_ref().and_then(|it| it.selector.as_ref());
    selector.is_some_and(|selector| {
        !selector.is_empty()
            && selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// Returns the labels of the runner's pods.
pub(super) fn pod_labels(deployment: &Deployment) -> Labels {
    let template = deployment.spec.as_ref().map(|it| &it.template);
    let metadata = template.and_then(|it| it.metadata.as_ref());
    metadata
        .and_then(|it| it.labels.clone())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::{State, checks::testing::run_check};

    /// Answers as the API server of an installation whose runner has these flags and no wrapper
    /// image.
    fn without_wrapper_image(
        flags: &'static [&'static str],
    ) -> impl Fn(&str) -> (u16, Value) + Clone {
        let labels = json!({"app": "function-runner"});
        move |path| match path {
            path if path.ends_with("/deployments/function-runner") => (
                200,
                json!({
                    "metadata": {"name": "function-runner"},
                    "spec": {
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                            {"name": "function-runner", "command": ["/home/nonroot/server"],
                             "args": flags},
                        ]}},
                    },
                    "status": {"readyReplicas": 1},
                }),
            ),
            path if path.ends_with("/services") => (
                200,
                json!({"metadata": {}, "items": [
                    {"metadata": {"name": "function-runner"},
                     "spec": {"selector": labels, "ports": [{"port": 9445}]}},
                ]}),
            ),
            _ => (404, Value::Null),
        }
    }

    #[rstest]
    #[case::current_porch(
        &["--port=9445", "--disable-runtimes=", "--log-level=2", "--functions=/home/nonroot/functions",
          "--max-request-body-size=6291456"],
        "the pod runtime is off (WRAPPER_SERVER_IMAGE is not set)"
    )]
    #[case::turned_off(
        &["--disable-runtimes=pod", "--pod-ttl=5m"],
        "the pod runtime is off (--disable-runtimes)"
    )]
    #[tokio::test]
    async fn accepts_a_runner_for_executables_without_a_wrapper_image(
        #[case] flags: &'static [&'static str],
        #[case] why: &str,
    ) {
        let findings = run_check(check, without_wrapper_image(flags)).await;
        let note =
            format!("porch-system/function-runner has 1 ready; {why}: only executables are served");
        assert_eq!(findings, [Outcome::ok(note)]);
    }

    #[rstest]
    #[case(&["--port", "9445", "-pod-ttl", "5m"], "with --pod-ttl the runner does not start")]
    #[case(&["--registry-mirror=a=b"], "with --registry-mirror the runner does not start")]
    #[tokio::test]
    async fn requires_the_wrapper_image_if_a_pod_flag_is_set(
        #[case] flags: &'static [&'static str],
        #[case] says: &str,
    ) {
        let findings = run_check(check, without_wrapper_image(flags)).await;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].state, State::Failed);
        assert!(findings[0].finding.ends_with(says), "{findings:?}");
    }
}
