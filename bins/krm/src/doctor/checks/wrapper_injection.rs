//! The way in which the wrapper gets into pods, chosen as the runner chooses it.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use runner_cluster::{
    Cluster, Injection, InjectionPolicy, InjectionReason, InjectionStatus, Injector, RenderOptions,
    Templates,
};

use super::templates;
use crate::doctor::{context::Context, outcome::Outcome};

/// An image for dry runs, where the Deployment names none. Nothing is pulled.
const ANY_IMAGE: &str = "example.com/krm-doctor/wrapper-server:v1";

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        if !context.uses_pods() {
            return vec![Outcome::skipped(
                "the pod runtime is off (--disable-runtimes)",
            )];
        }
        let Ok(templates) = templates::read(context).await else {
            return vec![Outcome::skipped("there is no template that can be used")];
        };
        vec![match chosen(context, &templates).await {
            None => Outcome::skipped("no way was chosen"),
            Some(status) => judge(&status),
        }]
    }
    .boxed()
}

fn judge(status: &InjectionStatus) -> Outcome {
    let finding = format!("{}: {}", status.injection, status.detail);
    match status.reason {
        InjectionReason::Unknown => Outcome::warning(
            finding,
            "see what refuses the dry run of a pod, or choose a way with --wrapper-injection",
        ),
        _ => Outcome::ok(finding),
    }
}

/// Returns the choice of a runner that has not started any pod yet.
pub(super) async fn chosen(
    context: &Context<'_>,
    templates: &Templates,
) -> Option<InjectionStatus> {
    let policy = match context.flag("wrapper-injection").as_deref() {
        Some("init") => InjectionPolicy::Fixed(Injection::Init),
        Some("container") => InjectionPolicy::Fixed(Injection::Container),
        Some("image") => InjectionPolicy::Fixed(Injection::Image),
        _ => InjectionPolicy::Auto,
    };
    let cluster = Cluster::new(context.client.clone(), &context.options.namespace);
    let injector = Injector::new(policy, cluster, Arc::new(options(context)));
    injector.choose(templates).await;
    injector.status()
}

/// Returns the options that pods of the runner are made with.
pub(super) fn options(context: &Context<'_>) -> RenderOptions {
    RenderOptions {
        wrapper_image: context
            .wrapper_image()
            .unwrap_or_else(|| ANY_IMAGE.to_owned()),
        max_request_body_size: 6_291_456,
        ..RenderOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::{State, checks::testing::examined};

    #[tokio::test]
    async fn tells_the_way_and_the_reason() {
        let mounts_images = |path: &str| match path {
            path if path.ends_with("/pods") => (
                200,
                json!({"metadata": {}, "spec": {"containers": [], "volumes": [
                    {"name": "wrapper-server-tools", "image": {"reference": "w"}},
                ]}}),
            ),
            _ => (404, Value::Null),
        };
        let findings = examined(check, mounts_images).await;
        assert_eq!(
            findings,
            [Outcome::ok("image: the API server accepts image volumes")]
        );
        let refuses_everything = |path: &str| match path {
            path if path.ends_with("/pods") => (403, Value::Null),
            _ => (404, Value::Null),
        };
        let findings = examined(check, refuses_everything).await;
        assert_eq!(findings[0].state, State::Warning);
        let finding = &findings[0].finding;
        assert!(
            finding.starts_with("container: it is not known"),
            "{finding}"
        );
    }
}
