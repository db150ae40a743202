//! Checks that an evaluation succeeds: the only check from end to end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use runner_core::{
    Reason,
    defaults::{RUNNER_ADDRESS, RUNNER_PORT, WRAPPER_PORT},
};
use runner_proto::{
    evaluator::{EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient},
    runner_status::GetStatusResponse,
    status,
};
use tonic::{Code, Status, transport::Channel};

use crate::doctor::{context::Context, outcome::Outcome};

const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of the evaluation, enough to pull images and start a pod.
const PATIENCE: Duration = Duration::from_secs(60);
/// A ResourceList that is harmless for any function, because it has no items to change.
const EMPTY: &[u8] = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";

pub(super) fn check<'a>(context: &'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>> {
    async {
        let options = context.options;
        let Some(server) = options.server() else {
            return vec![Outcome::skipped(format!(
                "no address: kubectl -n {} port-forward svc/{} {RUNNER_PORT}, and --address \
                 {RUNNER_ADDRESS}",
                options.runner_namespace, options.runner_deployment
            ))];
        };
        let channel = match server.connect(CONNECT).await {
            Ok(channel) => channel,
            Err(failure) => {
                return vec![Outcome::failed(
                    failure.message(),
                    format!(
                        "name the address of a runner with --address (kubectl -n {} get service {}), \
                         and the TLS flags if it serves TLS",
                        options.runner_namespace, options.runner_deployment
                    ),
                )];
            }
        };
        let image = match &options.image {
            Some(image) => image.clone(),
            None => match known(context).await {
                Some(image) => image,
                None => {
                    return vec![Outcome::skipped(format!(
                        "{} answers; name a function to evaluate with --image",
                        server.address()
                    ))];
                }
            },
        };
        vec![evaluate(context, channel, &image).await]
    }
    .boxed()
}

/// Returns a function that the runner has pods for, or else one with an executable.
async fn known(context: &Context<'_>) -> Option<String> {
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

async fn evaluate(context: &Context<'_>, channel: Channel, image: &str) -> Outcome {
    let mut request = tonic::Request::new(EvaluateFunctionRequest {
        resource_list: Bytes::from_static(EMPTY),
        image: image.to_owned(),
        ..EvaluateFunctionRequest::default()
    });
    request.set_timeout(PATIENCE);
    let began = Instant::now();
    let answer = FunctionEvaluatorClient::new(channel)
        .evaluate_function(request)
        .await;
    let took = began.elapsed();
    match answer {
        Ok(_) => Outcome::ok(format!("{image} answered after {took:.1?}")),
        Err(status) => judge(&context.options.namespace, image, &status),
    }
}

fn judge(namespace: &str, image: &str, status: &Status) -> Outcome {
    let error = status::decode(status);
    let finding = format!("{image} was not evaluated: {}", error.message());
    let fix = match error.reason() {
        // The function was started and answered, which is all that this check requires.
        Reason::FunctionFailed | Reason::BadOutput => {
            return Outcome::ok(format!("{image} ran, and finds fault with an empty list"));
        }
        _ if status.code() == Code::Unimplemented => {
            "name the address of a function runner with --address".to_owned()
        }
        Reason::FunctionNotFound | Reason::BadImage => {
            format!("name a function that is there with --image: krm image {image}")
        }
        Reason::PodStartFailed => {
            format!("kubectl -n {namespace} get events --sort-by=.lastTimestamp")
        }
        Reason::RegistryAuth | Reason::RegistryUnreachable => {
            format!("see what the registry says: krm image {image}")
        }
        Reason::KubernetesUnreachable => {
            "see the runner's log: it does not reach the API server".to_owned()
        }
        _ => format!(
            "see krm status, the runner's log, and whether policies of {namespace} let the runner \
             reach port {WRAPPER_PORT} of function pods"
        ),
    };
    Outcome::failed(finding, fix)
}

#[cfg(test)]
mod tests {
    use runner_core::EvaluationError;

    use super::*;
    use crate::doctor::State;

    fn judged(reason: Reason) -> Outcome {
        let error = EvaluationError::new(reason, "so it is");
        judge("fns", "example.com/fn:v1", &status::encode(&error))
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
        assert!(failed.finding.ends_with("so it is"), "{failed:?}");
        assert!(failed.fix.unwrap().starts_with("kubectl -n fns get events"));
        let slow = judged(Reason::DeadlineExceeded);
        assert!(slow.fix.unwrap().contains("port 9446"));
        let other = judge("fns", "x", &Status::unimplemented(""));
        assert!(other.fix.unwrap().contains("--address"));
    }
}
