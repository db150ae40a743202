//! Whether the runner itself is there, ready, and told what it must know.

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{Api, api::ListParams};

use super::selectors::Labels;
use crate::doctor::{context::Context, outcome::Outcome};

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        let options = context.options;
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
            Err(error) => return vec![Outcome::unseen("the runner's Deployment", error)],
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
            return vec![Outcome::ok(format!("{namespace}/{name} has {ready} ready"))];
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

fn wrapper(context: &Context<'_>) -> Option<Outcome> {
    let is_set = context.wrapper_image().is_some() || context.wrapper_image_is_elsewhere();
    if is_set || !context.uses_pods() {
        return None;
    }
    let (namespace, name) = (
        &context.options.runner_namespace,
        &context.options.runner_deployment,
    );
    Some(Outcome::failed(
        format!(
            "{namespace}/{name} does not set WRAPPER_SERVER_IMAGE: the pod runtime is off, and with \
             a flag of the pod runtime the runner does not start"
        ),
        format!(
            "kubectl -n {namespace} set env deployment/{name} \
             WRAPPER_SERVER_IMAGE=ghcr.io/krm-function-runner/wrapper-server:v{}",
            env!("CARGO_PKG_VERSION")
        ),
    ))
}

fn pod_namespace(context: &Context<'_>) -> Option<Outcome> {
    let looked_at = &context.options.namespace;
    let used = context.flag("pod-namespace");
    let used = used.unwrap_or_else(|| "porch-fn-system".to_owned());
    (used != *looked_at && context.uses_pods()).then(|| {
        Outcome::failed(
            format!("the runner keeps its pods in {used}, not in {looked_at}, which is looked at"),
            format!("krm doctor --namespace {used}, or start the runner with --pod-namespace={looked_at}"),
        )
    })
}

async fn service(context: &Context<'_>, deployment: &Deployment) -> Option<Outcome> {
    let (namespace, name) = (
        &context.options.runner_namespace,
        &context.options.runner_deployment,
    );
    let port = context
        .flag("port")
        .and_then(|it| it.parse().ok())
        .unwrap_or(9445);
    let services: Api<Service> = Api::namespaced(context.client.clone(), namespace);
    let services = match services.list(&ListParams::default()).await {
        Ok(services) => services,
        Err(error) => return Some(Outcome::unseen("the runner's Service", &error)),
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

/// The labels of the runner's pods.
pub(super) fn pod_labels(deployment: &Deployment) -> Labels {
    let template = deployment.spec.as_ref().map(|it| &it.template);
    let metadata = template.and_then(|it| it.metadata.as_ref());
    metadata
        .and_then(|it| it.labels.clone())
        .unwrap_or_default()
}
