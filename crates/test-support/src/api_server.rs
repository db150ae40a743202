//! A scripted Kubernetes API server that records the requests it receives.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::Service;

/// A recorded request: method, path with query, body.
pub type ApiRequest = (String, String, Value);

/// All requests received so far.
#[derive(Clone, Default)]
pub struct ApiRequests(Arc<Mutex<Vec<ApiRequest>>>);

/// Returns an API server, as the service of a `kube::Client`, and the requests it receives.
///
/// Each request is answered with `answer(request)`: status code and body. With `None` the request
/// hangs, like a watch without events.
pub fn api_server<B>(
    answer: impl Fn(&ApiRequest) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (
    impl Service<
        Request<B>,
        Response = Response<Full<Bytes>>,
        Error = Box<dyn Error + Send + Sync>,
        Future: Send,
    > + Clone
    + Send
    + 'static,
    ApiRequests,
)
where
    B: http_body::Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let requests = ApiRequests::default();
    let record = requests.clone();
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<B>| {
        let (record, answer) = (record.clone(), Arc::clone(&answer));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let request = (head.method.to_string(), head.uri.to_string(), body);
            let answer = answer(&request);
            record.0.lock().unwrap().push(request);
            let Some((code, answer)) = answer else {
                return std::future::pending().await;
            };
            let answer = Full::from(answer.to_string());
            Ok(Response::builder().status(code).body(answer)?)
        }
    });
    (service, requests)
}

/// Returns a failure response of the API server.
#[must_use]
pub fn refusal(code: u16, message: &str) -> (u16, Value) {
    // Clients recognise a missing object and a missing permission by these reasons.
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "Any",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "code": code, "reason": reason, "message": message});
    (code, status)
}

// === impl ApiRequests ===

impl ApiRequests {
    /// Returns all requests, in order.
    #[must_use]
    pub fn all(&self) -> Vec<ApiRequest> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the methods of all requests, in order.
    #[must_use]
    pub fn methods(&self) -> Vec<String> {
        let all = self.all();
        all.into_iter().map(|(method, _, _)| method).collect()
    }
}
