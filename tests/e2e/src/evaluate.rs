//! A gRPC client like Porch's.

use std::time::Duration;

use anyhow::Result;
use runner_proto::evaluator::{
    EvaluateFunctionRequest, EvaluateFunctionResponse,
    function_evaluator_client::FunctionEvaluatorClient,
};
use tonic::transport::Channel;

use crate::LIMIT;

/// Returns a client that connects on its first call.
pub fn connect(address: &str) -> Result<FunctionEvaluatorClient<Channel>> {
    let channel = Channel::from_shared(format!("http://{address}"))?
        .connect_timeout(LIMIT)
        .timeout(LIMIT)
        .connect_lazy();
    Ok(FunctionEvaluatorClient::new(channel))
}

/// Evaluates a function within [`LIMIT`].
pub async fn evaluate(
    client: &mut FunctionEvaluatorClient<Channel>,
    image: &str,
    resource_list: impl Into<Vec<u8>>,
) -> Result<EvaluateFunctionResponse, tonic::Status> {
    evaluate_within(LIMIT, client, image, resource_list).await
}

/// Evaluates a function within a deadline.
pub async fn evaluate_within(
    deadline: Duration,
    client: &mut FunctionEvaluatorClient<Channel>,
    image: &str,
    resource_list: impl Into<Vec<u8>>,
) -> Result<EvaluateFunctionResponse, tonic::Status> {
    let mut request = tonic::Request::new(EvaluateFunctionRequest {
        resource_list: resource_list.into().into(),
        image: image.to_owned(),
        ..EvaluateFunctionRequest::default()
    });
    request.set_timeout(deadline);
    // The deadline in the request does not include the time to connect.
    let answer = tokio::time::timeout(deadline, client.evaluate_function(request)).await;
    let late = || tonic::Status::deadline_exceeded(format!("no answer within {deadline:?}"));
    answer
        .unwrap_or_else(|_| Err(late()))
        .map(tonic::Response::into_inner)
}

/// Returns a ResourceList with this configuration and this number of ConfigMaps.
#[must_use]
pub fn resource_list(config: &[(&str, &str)], items: usize) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n".to_owned();
    text.push_str("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n");
    text.push_str("  metadata:\n    name: config\n  data:\n");
    for (key, value) in config {
        text.push_str(&format!("    {key}: {value}\n"));
    }
    text.push_str("items:\n");
    for item in 0..items {
        text.push_str("- apiVersion: v1\n  kind: ConfigMap\n");
        text.push_str(&format!("  metadata:\n    name: item-{item}\n"));
    }
    text
}
