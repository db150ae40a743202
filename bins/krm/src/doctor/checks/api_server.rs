//! Checks that the API server answers.

use futures::{FutureExt, future::BoxFuture};

use crate::doctor::{
    context::Context,
    outcome::{Outcome, said},
};

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        let fix = "check KUBECONFIG, --kubeconfig and --context with: kubectl cluster-info";
        if let Some(why) = &context.unreachable {
            return vec![Outcome::failed(why, fix)];
        }
        vec![match context.client.apiserver_version().await {
            Ok(version) => Outcome::ok(format!("Kubernetes {} answers", version.git_version)),
            Err(error) => Outcome::failed(
                format!("the API server answers, but not to you: {}", said(&error)),
                "log in again, then: kubectl auth whoami",
            ),
        }]
    }
    .boxed()
}
