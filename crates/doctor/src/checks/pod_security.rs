//! Checks that a pod made from the template is admitted: pod security levels, quotas, webhooks.

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams};
use runner_cluster::{POD_TEMPLATE, sample_pod};

use super::{templates, wrapper_injection};
use crate::{context::Context, outcome::Outcome};

/// Name of the pod in the dry run.
///
/// No pod of this name is ever created.
const SAMPLE: &str = "krm-doctor-probe";

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        if let Some(why) = context.pod_runtime_off() {
            return vec![Outcome::skipped(why)];
        }
        vec![try_one(context).await]
    }
    .boxed()
}

async fn try_one(context: &Context) -> Outcome {
    let Ok(templates) = templates::read(context).await else {
        return Outcome::skipped("no valid template exists");
    };
    let mut options = wrapper_injection::options(context);
    if let Some(injection) = wrapper_injection::injection(context).await {
        options.injection = injection;
    }
    let pod = sample_pod(SAMPLE, &templates, &options);
    let namespace = &context.options.namespace;
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match pods.create(&dry_run, &pod).await {
        Ok(_) => Outcome::ok(format!("{namespace} admits a pod made from the template")),
        Err(kube::Error::Api(status)) => judge(namespace, status.code, &status.message),
        Err(error) => Outcome::unreadable("the result of a dry run", &error),
    }
}

fn judge(namespace: &str, code: u16, message: &str) -> Outcome {
    let finding = format!("{namespace} does not admit a pod made from the template: {message}");
    if message.contains("PodSecurity") {
        return Outcome::failed(
            finding,
            format!(
                "set the fields that the message names: kubectl -n {namespace} edit podtemplate {POD_TEMPLATE} \
                 (images that run as root cannot have runAsNonRoot), or relax the level: kubectl \
                 label namespace {namespace} pod-security.kubernetes.io/enforce=baseline --overwrite"
            ),
        );
    }
    match code {
        403 if message.contains("exceeded quota") => Outcome::failed(
            finding,
            format!("kubectl -n {namespace} describe resourcequota, and raise it"),
        ),
        // The user may not create pods, which does not affect the runner.
        403 if message.contains("cannot create resource") => {
            Outcome::skipped(format!("you may not create pods in {namespace}: {message}"))
        }
        404 => Outcome::skipped(format!("there is no namespace {namespace}")),
        409 => Outcome::ok(format!("{namespace} admits pods")),
        _ => Outcome::failed(
            finding,
            format!(
                "kubectl -n {namespace} edit podtemplate {POD_TEMPLATE}, or change the policy that rejects the pod"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn distinguishes_the_causes_of_a_rejection() {
        let states = [
            (
                403,
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"",
                State::Failed,
            ),
            (
                403,
                "pods \"x\" is forbidden: exceeded quota: q",
                State::Failed,
            ),
            (
                403,
                "pods is forbidden: User \"u\" cannot create resource \"pods\"",
                State::Skipped,
            ),
            (422, "Pod \"x\" is invalid", State::Failed),
            (404, "namespaces \"fns\" not found", State::Skipped),
        ];
        for (code, message, state) in states {
            assert_eq!(judge("fns", code, message).state, state, "{message}");
        }
    }
}
