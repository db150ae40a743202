//! The connection to a pod: dialling, health checks and evaluations.

use std::{
    error::Error,
    net::SocketAddr,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use http::HeaderMap;
use runner_core::{EvaluationError, Output, Reason};
use runner_proto::{
    evaluator::{EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient},
    health::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    },
    status,
    wire::{SegmentedChannel, SegmentedMessage},
};
use tonic::{
    Code, Status,
    metadata::MetadataMap,
    transport::{Channel, Endpoint, Uri},
};

use crate::{Pod, target::Target};

/// Time limit for a TCP connection to a pod (2 s).
///
/// A pod's address accepts or refuses at once; the limit soon detects packets that are lost.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
const KNOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// Delay of a probe of the pod's own address (200 ms), by which the service is preferred.
const HEAD_START: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Text of the HTTP client's error for a connection that was never established.
const CONNECT_ERROR: &str = "tcp connect error";
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// A connection to a pod: the one HTTP/2 channel, and its target.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) target: Target,
    pub(crate) channel: Channel,
}

/// A reason why a call returned no output.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The wrapper reported an error.
    Reported(EvaluationError),
    /// The call was not answered, or the wrapper is draining: the pod may be gone.
    Lost(String),
}

// === impl Target ===

impl Target {
    /// Returns a connection that is established when it is first used, and again when necessary.
    pub(crate) fn connect(self) -> Connection {
        let channel = self.channel();
        Connection {
            target: self,
            channel,
        }
    }

    fn channel(&self) -> Channel {
        let address = SocketAddr::new(self.address, runner_cluster::PORT);
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .expect("an address and a port are a URI")
            .user_agent(format!(
                "{}{}",
                status::OWN_AGENT,
                env!("CARGO_PKG_VERSION")
            ))
            .expect("a name and a version are a header")
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            // A wrapper's error carries the end of the function's stderr in headers. Wrappers send
            // all of it to this user agent, which must therefore accept headers of this size.
            .http2_max_header_list_size(status::MAX_HEADER_SIZE)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .tcp_nodelay(true);
        match self.authority.as_deref().map(str::parse::<Uri>) {
            Some(Ok(origin)) => endpoint.origin(origin).connect_lazy(),
            _ => endpoint.connect_lazy(),
        }
    }
}

/// Sends health checks until the wrapper answers (knocking).
pub(crate) async fn knock(channel: Channel) {
    let mut pause = FIRST_PAUSE;
    while !answers(channel.clone(), KNOCK_TIMEOUT).await {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the first connection over which the wrapper answers. Preferred ones come first and have
/// a head start.
pub(crate) async fn probe(connections: Vec<Connection>, within: Duration) -> Option<Connection> {
    // A service may be unknown to the node yet: a refusal says nothing about the pod behind it.
    if let [connection] = connections.as_slice()
        && connection.target.is_service()
    {
        let answered = tokio::time::timeout(within, knock(connection.channel.clone())).await;
        return answered.ok().map(|()| connection.clone());
    }
    let mut checks = FuturesUnordered::new();
    for (start, connection) in (0..).map(|turn| HEAD_START * turn).zip(connections) {
        checks.push(async move {
            tokio::time::sleep(start).await;
            let left = within.saturating_sub(start);
            let answers = answers(connection.channel.clone(), left).await;
            answers.then_some(connection)
        });
    }
    while let Some(answered) = checks.next().await {
        if answered.is_some() {
            return answered;
        }
    }
    None
}

/// Returns whether the wrapper reports SERVING within the time limit.
async fn answers(channel: Channel, within: Duration) -> bool {
    let mut client = HealthClient::new(channel);
    let check = client.check(HealthCheckRequest::default());
    match tokio::time::timeout(within, check).await {
        Ok(Ok(answer)) => answer.into_inner().status() == ServingStatus::Serving,
        _ => false,
    }
}

/// Evaluates a function in a pod.
pub(crate) async fn evaluate(
    channel: Channel,
    image: String,
    resource_list: Bytes,
    headers: HeaderMap,
    deadline: Instant,
    limit: usize,
) -> Result<Output, CallError> {
    let mut client = FunctionEvaluatorClient::new(SegmentedChannel(channel))
        .max_decoding_message_size(limit)
        .max_encoding_message_size(usize::MAX);
    let message = EvaluateFunctionRequest {
        resource_list,
        image,
        ..EvaluateFunctionRequest::default()
    };
    let mut request = SegmentedMessage::request(message);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    request.set_timeout(deadline.saturating_duration_since(Instant::now()));
    match client.evaluate_function(request).await {
        Ok(answer) => {
            let answer = answer.into_inner();
            Ok(Output {
                resource_list: answer.resource_list,
                log: answer.log,
                runtime: Pod::NAME,
            })
        }
        Err(status) => Err(failed(&status, deadline)),
    }
}

/// Distinguishes errors of the wrapper from those of the connection.
///
/// A draining wrapper is about to end, so a call that it refused may run in another pod.
fn failed(status: &Status, deadline: Instant) -> CallError {
    let error = status::decode(status);
    let is_reported = !status.details().is_empty();
    if is_reported && error.reason() != Reason::Draining {
        return CallError::Reported(error);
    }
    let silent = matches!(
        status.code(),
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Aborted
    ) || status.source().is_some();
    if !silent || Instant::now() >= deadline {
        return CallError::Reported(error);
    }
    let mut detail = status.message().to_owned();
    let mut is_unconnected = detail.contains(CONNECT_ERROR);
    let mut source = status.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        is_unconnected |= text.contains(CONNECT_ERROR);
        if !detail.contains(&text) {
            detail = format!("{detail}: {text}");
        }
        source = inner.source();
    }
    let when = if is_reported {
        "the pod is ending and refused the call"
    } else if is_unconnected {
        "no connection, so the function did not run"
    } else {
        "the connection was lost while the function ran"
    };
    CallError::Lost(format!("{when}: {detail}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn keeps_the_error_of_the_wrapper() {
        let sent =
            EvaluationError::new(Reason::FunctionFailed, "exit status 3").with("exit_code", "3");
        let CallError::Reported(error) = failed(&status::encode(&sent), later()) else {
            panic!("the function failed, not the pod")
        };
        assert_eq!(
            (error.reason(), error.fact("exit_code")),
            (Reason::FunctionFailed, Some("3"))
        );
    }

    #[test]
    fn treats_a_failed_connection_as_a_lost_pod() {
        assert!(matches!(
            failed(&Status::unavailable("tcp connect error"), later()),
            CallError::Lost(_)
        ));
        assert!(matches!(
            failed(&Status::unknown("transport error"), later()),
            CallError::Lost(_)
        ));
    }

    #[tokio::test]
    async fn distinguishes_a_refused_connection_from_a_lost_one() {
        // No server listens at this address.
        let target = Target {
            address: [127, 77, 77, 77].into(),
            authority: None,
        };
        let channel = target.connect().channel;
        let list = Bytes::new();
        let asked = evaluate(channel, "fn".to_owned(), list, HeaderMap::new(), later(), 1);
        let Err(CallError::Lost(detail)) = asked.await else {
            panic!("nobody can have answered")
        };
        assert!(
            detail.starts_with("no connection, so the function did not run: "),
            "{detail}"
        );
        assert!(detail.contains("Connection refused"), "{detail}");
        let CallError::Lost(detail) = failed(&Status::unknown("transport error"), later()) else {
            panic!("silence is a lost pod")
        };
        assert_eq!(
            detail,
            "the connection was lost while the function ran: transport error"
        );
    }

    #[test]
    fn reports_that_an_ending_pod_refused_the_call() {
        let refused = EvaluationError::new(Reason::Draining, "shutting down");
        let CallError::Lost(detail) = failed(&status::encode(&refused), later()) else {
            panic!("another pod may take the call")
        };
        assert_eq!(
            detail,
            "the pod is ending and refused the call: shutting down"
        );
    }

    #[test]
    fn treats_goaway_before_the_answer_as_a_lost_pod() {
        // The client's status for a call that the pod did not answer before it sent GOAWAY.
        let mut goodbye = Status::internal("h2 protocol error");
        goodbye.set_source(Arc::new(std::io::Error::other("GOAWAY")));
        assert!(matches!(failed(&goodbye, later()), CallError::Lost(_)));
    }

    #[test]
    fn does_not_treat_a_message_over_the_limit_as_a_lost_pod() {
        let status = Status::out_of_range("decoded message length too large");
        assert!(matches!(failed(&status, later()), CallError::Reported(_)));
    }
}
