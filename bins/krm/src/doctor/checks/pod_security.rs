//! Whether a pod made from the template is admitted: pod security levels, quotas, webhooks.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams};
use runner_cluster::{Injection, POD_TEMPLATE, RenderOptions};
use runner_pool::{Attempt, Create, Function, Settings, TemplateVersion, Time};

use super::templates;
use crate::doctor::{context::Context, outcome::Outcome};

/// Whatever the image is: none is pulled.
const ANY_IMAGE: &str = "example.com/krm-doctor/probe:v1";
const ANY_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        if !context.uses_pods() {
            return vec![Outcome::skipped(
                "the pod runtime is off (--disable-runtimes)",
            )];
        }
        vec![try_one(context).await]
    }
    .boxed()
}

async fn try_one(context: &Context<'_>) -> Outcome {
    let Ok(templates) = templates::read(context).await else {
        return Outcome::skipped("there is no template that can be used");
    };
    let Some(pod) = rendered(context, &templates) else {
        return Outcome::skipped("no pod can be made");
    };
    let namespace = &context.options.namespace;
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match pods.create(&dry_run, &pod).await {
        Ok(_) => Outcome::ok(format!("{namespace} takes a pod made from the template")),
        Err(kube::Error::Api(status)) => judge(namespace, status.code, &status.message),
        Err(error) => Outcome::unseen("whether a pod is taken", &error),
    }
}

fn judge(namespace: &str, code: u16, message: &str) -> Outcome {
    let finding = format!("{namespace} takes no pod made from the template: {message}");
    if message.contains("PodSecurity") {
        return Outcome::failed(
            finding,
            format!(
                "set the fields it names: kubectl -n {namespace} edit podtemplate {POD_TEMPLATE} \
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
        // Not ours to create, which says nothing of the runner.
        403 if message.contains("cannot create resource") => {
            Outcome::skipped(format!("you may not create pods in {namespace}: {message}"))
        }
        404 => Outcome::skipped(format!("there is no namespace {namespace}")),
        409 => Outcome::ok(format!("{namespace} takes pods")),
        _ => Outcome::failed(
            finding,
            format!(
                "kubectl -n {namespace} edit podtemplate {POD_TEMPLATE}, or change what refuses it"
            ),
        ),
    }
}

fn rendered(context: &Context<'_>, templates: &runner_cluster::Templates) -> Option<Pod> {
    let image = ANY_IMAGE.parse().ok()?;
    let digest = format!("{ANY_IMAGE}@{ANY_DIGEST}").parse::<runner_core::ImageReference>();
    let digest = digest.ok()?.digest()?.clone();
    let create = Create {
        name: "krm-doctor-probe".into(),
        attempt: Attempt(0),
        function: Arc::new(Function::new(&image, digest, Settings::default())),
        template: TemplateVersion::new(templates.version.clone(), 0),
        reclaim_after: Time::default(),
    };
    let injection = match context.flag("wrapper-injection").as_deref() {
        Some("container") => Injection::Container,
        Some("image") => Injection::Image,
        _ => Injection::Init,
    };
    let options = RenderOptions {
        wrapper_image: context
            .wrapper_image()
            .unwrap_or_else(|| ANY_IMAGE.to_owned()),
        injection,
        max_request_body_size: 6_291_456,
        pull_secret: None,
    };
    let entrypoint = ["/function".to_owned()];
    let pod = runner_cluster::pod(&create, templates, &entrypoint, None, None, &options);
    Some(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn who_refuses_is_told_apart() {
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
