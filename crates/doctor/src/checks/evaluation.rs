//! Checks that an evaluation succeeds: the only check from end to end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use runner_client::{CallError, Client, EvaluateFunctionRequest, GetStatusResponse};
use runner_core::{
    Reason,
    defaults::{RUNNER_ADDRESS, RUNNER_PORT, WRAPPER_PORT},
    with_causes,
};

use crate::{context::Context, outcome::Outcome};

/// Time limit of the health check that shows whether a runner answers (10 s).
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the evaluation (60 s), enough to pull images and start a pod.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(60);
/// A ResourceList that is harmless for any function, because it has no items to change.
const EMPTY: &[u8] = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";

pub(super) fn check(context: &Context) -> BoxFuture<'_, Vec<Outcome>> {
    async {
        let options = &context.options;
        let Some(client) = &context.runner_client else {
            return vec![Outcome::skipped(format!(
                "the address of the runner is not known: kubectl -n {} port-forward svc/{} {RUNNER_PORT}, and \
                 --address {RUNNER_ADDRESS}",
                options.runner_namespace, options.runner_deployment
            ))];
        };
        // A server without a health service answers, too.
        if let Err(error) = client.health("", HEALTH_TIMEOUT).await
            && error.is_unreachable()
        {
            return vec![Outcome::failed(
                with_causes(&error),
                format!(
                    "name the address of a runner with --address (kubectl -n {} get service {}), \
                     and the TLS flags if it serves TLS",
                    options.runner_namespace, options.runner_deployment
                ),
            )];
        }
        let image = match &options.image {
            Some(image) => image.clone(),
            None => match known_function(context).await {
                Some(image) => image,
                None => {
                    return vec![Outcome::skipped(format!(
                        "{} answers; name a function to evaluate with --image",
                        client.address()
                    ))];
                }
            },
        };
        vec![evaluate(context, client, &image).await]
    }
    .boxed()
}

/// Returns a function that the runner has pods for, or else one with an executable.
async fn known_function(context: &Context) -> Option<String> {
    let GetStatusResponse { exec, pod, .. } = context.report().await?;
    let in_pod = pod
        .as_ref()
        .and_then(|it| Some(it.functions.first()?.image.clone()));
    in_pod.or_else(|| {
        let function = exec.as_ref()?.functions.first()?;
        let version = function.versions.first()?;
        let separator = if version.contains(':') { '@' } else { ':' };
        Some(format!("{}{separator}{version}", function.image))
    })
}

async fn evaluate(context: &Context, client: &Client, image: &str) -> Outcome {
    let request = EvaluateFunctionRequest {
        resource_list: Bytes::from_static(EMPTY),
        image: image.to_owned(),
        ..EvaluateFunctionRequest::default()
    };
    let started = Instant::now();
    let response = client.evaluate(request, EVALUATION_TIMEOUT).await;
    let duration = started.elapsed();
    match response {
        Ok(_) => Outcome::ok(format!("{image} answered after {duration:.1?}")),
        Err(error) => judge(&context.options.namespace, image, &error),
    }
}

fn judge(namespace: &str, image: &str, error: &CallError) -> Outcome {
    let reason = match error {
        CallError::Evaluation(error) => Some(error.reason()),
        _ => None,
    };
    let fix = match (error, reason) {
        // The function was started and answered, which is all that this check requires.
        (_, Some(Reason::FunctionFailed | Reason::BadOutput)) => {
            return Outcome::ok(format!("{image} ran, and rejects an empty list"));
        }
        (CallError::NotOffered { .. }, _) => {
            "name the address of a function runner with --address".to_owned()
        }
        (_, Some(Reason::FunctionNotFound | Reason::BadImage)) => {
            format!("name an existing function with --image: krm image {image}")
        }
        (_, Some(Reason::PodStartFailed)) => {
            format!("kubectl -n {namespace} get events --sort-by=.lastTimestamp")
        }
        (_, Some(Reason::RegistryAuth | Reason::RegistryUnreachable)) => {
            format!("check the answer of the registry: krm image {image}")
        }
        (_, Some(Reason::KubernetesUnreachable)) => {
            "check the log of the runner: it does not reach the API server".to_owned()
        }
        _ => format!(
            "check krm status, the log of the runner, and whether network policies of {namespace} \
             let the runner reach port {WRAPPER_PORT} of function pods"
        ),
    };
    Outcome::failed(
        format!("{image} was not evaluated: {}", with_causes(error)),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use runner_core::EvaluationError;
    use tonic::Status;

    use super::*;
    use crate::State;

    fn judged(reason: Reason) -> Outcome {
        let error = EvaluationError::new(reason, "the cause");
        judge("fns", "example.com/fn:v1", &error.into())
    }

    #[test]
    fn accepts_a_function_that_reports_an_error() {
        assert_eq!(judged(Reason::FunctionFailed).state, State::Ok);
        assert_eq!(judged(Reason::BadOutput).state, State::Ok);
    }

    #[test]
    fn reports_the_cause_of_a_failed_evaluation_with_a_fix() {
        let failed = judged(Reason::PodStartFailed);
        assert_eq!(failed.state, State::Failed);
        assert!(failed.finding.ends_with("the cause"), "{failed:?}");
        assert!(failed.fix.unwrap().starts_with("kubectl -n fns get events"));
        let slow = judged(Reason::DeadlineExceeded);
        assert!(slow.fix.unwrap().contains("port 9446"));
        let other = CallError::NotOffered {
            address: "localhost:1".to_owned(),
            service: "evaluator.FunctionEvaluator",
            source: Status::unimplemented("").into(),
        };
        let other = judge("fns", "x", &other);
        assert!(other.fix.unwrap().contains("--address"));
    }
}
