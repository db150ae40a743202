//! A scripted API server for tests that records the requests it receives.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::{Value, json};

/// A recorded request: method, path with query, body.
pub(crate) type Asked = (String, String, Value);

/// All requests received so far.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<Asked>>>);

/// Returns a client of a server that answers each request with `answer(method, path)`.
///
/// With `None` the request hangs, like a watch without events.
pub(crate) fn client(
    answer: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (kube::Client, Record) {
    let record = Record::default();
    let noted = record.clone();
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (noted, answer) = (noted.clone(), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let method = head.method.to_string();
            let path = head.uri.to_string();
            let answer = answer(&method, &path);
            noted.0.lock().unwrap().push((method, path, body));
            let Some((code, answer)) = answer else {
                return std::future::pending().await;
            };
            let answer = Full::<Bytes>::from(answer.to_string());
            Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    (kube::Client::new(service, "fns"), record)
}

/// Returns a failure response of the API server.
pub(crate) fn refusal(code: u16, message: &str) -> Option<(u16, Value)> {
    // kube recognises a missing object by this reason.
    let reason = if code == 404 { "NotFound" } else { "Any" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "code": code, "reason": reason, "message": message});
    Some((code, status))
}

// === impl Record ===

impl Record {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the methods of all requests, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        let all = self.all();
        all.into_iter().map(|(method, _, _)| method).collect()
    }
}
