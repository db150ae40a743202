//! Checks that the API server answers.

use futures::{FutureExt, future::BoxFuture};

use crate::{
    context::Context,
    outcome::{Outcome, message},
};

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let fix = "check KUBECONFIG, --kubeconfig and --context with: kubectl cluster-info";
        if let Some(why) = &context.unreachable {
            return vec![Outcome::failed(why, fix)];
        }
        vec![match context.client.apiserver_version().await {
            Ok(version) => Outcome::ok(format!("Kubernetes {} answers", version.git_version)),
            Err(error) => Outcome::failed(
                format!(
                    "the API server rejects your credentials: {}",
                    message(&error)
                ),
                "log in again, then: kubectl auth whoami",
            ),
        }]
    }
    .boxed()
}
