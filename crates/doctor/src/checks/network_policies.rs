//! Checks that network policies allow traffic between the runner and functions, and restrict
//! others.

mod traffic;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{core::v1::Namespace, networking::v1::NetworkPolicy};
use kube::{Api, ResourceExt, api::ListParams};
use runner_cluster::IMAGE_LABEL;
use runner_core::defaults::{ANNOUNCE_PORT, WRAPPER_PORT};

use super::{runner::pod_labels, selectors::Labels, templates};
use crate::{context::Context, outcome::Outcome};
use traffic::{Direction, Effect, Endpoint};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        if let Some(why) = context.pod_runtime_off() {
            return vec![Outcome::skipped(why)];
        }
        let Some(deployment) = context.runner() else {
            return vec![Outcome::skipped(
                "the labels of the runner are not known: its Deployment cannot be read",
            )];
        };
        let runner = endpoint(
            context,
            &context.options.runner_namespace,
            pod_labels(deployment),
        )
        .await;
        let function = endpoint(
            context,
            &context.options.namespace,
            function_labels(context).await,
        )
        .await;
        match policies(context).await {
            Ok(policies) => judge(context, &policies, &runner, &function),
            Err(error) => vec![Outcome::unreadable("network policies", &error)],
        }
    }
    .boxed()
}

async fn function_labels(context: &Context) -> Labels {
    let templates = templates::read(context).await.ok();
    let metadata = templates.and_then(|it| it.pod.metadata);
    let mut labels = metadata.and_then(|it| it.labels).unwrap_or_default();
    labels.insert(IMAGE_LABEL.to_owned(), "krm-doctor-probe".to_owned());
    labels
}

async fn endpoint(context: &Context, namespace: &str, labels: Labels) -> Endpoint {
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let found = namespaces.get_opt(namespace).await.ok().flatten();
    let mut namespace_labels = found.and_then(|it| it.metadata.labels).unwrap_or_default();
    // Kubernetes sets this label on every namespace, also on those that cannot be read here.
    namespace_labels.insert(
        "kubernetes.io/metadata.name".to_owned(),
        namespace.to_owned(),
    );
    Endpoint {
        namespace: namespace.to_owned(),
        namespace_labels,
        labels,
    }
}

async fn policies(context: &Context) -> Result<Vec<NetworkPolicy>, kube::Error> {
    let options = &context.options;
    let list = async |namespace: &str| {
        let policies: Api<NetworkPolicy> = Api::namespaced(context.client.clone(), namespace);
        policies
            .list(&ListParams::default())
            .await
            .map(|it| it.items)
    };
    let mut all = list(&options.namespace).await?;
    if options.runner_namespace != options.namespace {
        all.extend(list(&options.runner_namespace).await?);
    }
    Ok(all)
}

fn judge(
    context: &Context,
    policies: &[NetworkPolicy],
    runner: &Endpoint,
    function: &Endpoint,
) -> Vec<Outcome> {
    let announce = context.flag("announce-port").and_then(|it| it.parse().ok());
    let announce = announce.unwrap_or(ANNOUNCE_PORT);
    // Direction, the restricted end, its peer, the port, and whether evaluations depend on it.
    let ways = [
        (Direction::Ingress, function, runner, WRAPPER_PORT, true),
        (Direction::Egress, runner, function, WRAPPER_PORT, true),
        (Direction::Egress, function, runner, announce, false),
        (Direction::Ingress, runner, function, announce, false),
    ];
    let mut outcomes: Vec<Outcome> = ways
        .into_iter()
        .filter_map(|(direction, subject, peer, port, vital)| {
            let effect = traffic::effect(policies, direction, subject, peer, port);
            blocked(direction, subject, peer, port, vital, &effect)
        })
        .collect();
    let open = traffic::effect(policies, Direction::Ingress, function, runner, WRAPPER_PORT);
    if matches!(open, Effect::Unrestricted) {
        let namespace = &function.namespace;
        outcomes.push(Outcome::warning(
            format!("no policy of {namespace} selects function pods: every pod can reach them"),
            "kubectl apply -k deploy/network-policies",
        ));
    }
    if outcomes.is_empty() {
        outcomes.push(Outcome::ok(
            "the runner can reach function pods, and policies restrict other clients",
        ));
    }
    outcomes
}

fn blocked(
    direction: Direction,
    subject: &Endpoint,
    peer: &Endpoint,
    port: u16,
    vital: bool,
    effect: &Effect<'_>,
) -> Option<Outcome> {
    let Effect::Denied(by) = effect else {
        return None;
    };
    let names: Vec<String> = by.iter().map(|it| it.name_any()).collect();
    let (names, first) = (names.join(", "), names.first().cloned().unwrap_or_default());
    let (verb, field, list) = match direction {
        Direction::Ingress => ("reach", "ingress", "from"),
        Direction::Egress => ("be reached from", "egress", "to"),
    };
    let without = if vital {
        "every evaluation in a pod fails"
    } else {
        "pods cannot announce themselves, so cold starts take about 1 s longer"
    };
    let (who, whom) = (&peer.namespace, &subject.namespace);
    let finding = format!(
        "NetworkPolicy {names} of {whom} does not let pods of {who} {verb} port {port}: {without}"
    );
    let fix = format!(
        "kubectl -n {whom} edit networkpolicy {first}: add to spec.{field} {{ports: [{{port: \
         {port}}}], {list}: [{{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: \
         {who}}}}}}}]}}"
    );
    Some(if vital {
        Outcome::failed(finding, fix)
    } else {
        Outcome::warning(finding, fix)
    })
}
