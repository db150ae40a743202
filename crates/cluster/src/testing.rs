//! A client of a scripted API server.

use runner_test_support::{ApiRequest, ApiRequests, api_server, refusal};
use serde_json::Value;

/// Returns a client of a server that answers each request with `answer(method, path)`.
///
/// With `None` the request hangs, like a watch without events.
pub(crate) fn client(
    answer: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (kube::Client, ApiRequests) {
    let answer = move |(method, path, _): &ApiRequest| answer(method, path);
    let (service, requests) = api_server(answer);
    (kube::Client::new(service, "fns"), requests)
}

/// Returns the failure response of an API server that refuses a request.
pub(crate) fn refuse(code: u16, message: &str) -> Option<(u16, Value)> {
    Some(refusal(code, message))
}
