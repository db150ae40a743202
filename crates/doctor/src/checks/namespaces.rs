//! Checks that both namespaces exist.

use futures::{FutureExt, future::BoxFuture, future::join_all};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use crate::{context::Context, outcome::Outcome};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let options = &context.options;
        let mut names = vec![
            (&options.namespace, "--namespace"),
            (&options.runner_namespace, "--runner-namespace"),
        ];
        names.dedup_by_key(|(name, _)| *name);
        join_all(
            names
                .into_iter()
                .map(|(name, flag)| look(context, name, flag)),
        )
        .await
    }
    .boxed()
}

async fn look(context: &Context, name: &str, flag: &str) -> Outcome {
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    match namespaces.get_opt(name).await {
        Ok(Some(found)) => match found.metadata.deletion_timestamp {
            None => Outcome::ok(format!("{name} exists")),
            Some(_) => Outcome::failed(
                format!("namespace {name} is being deleted"),
                format!(
                    "find what blocks the deletion: kubectl get namespace {name} -o yaml; then create it again"
                ),
            ),
        },
        Ok(None) => Outcome::failed(
            format!("there is no namespace {name}"),
            format!("kubectl create namespace {name}, or name another with {flag}"),
        ),
        Err(error) => Outcome::unreadable(&format!("namespace {name}"), &error),
    }
}
