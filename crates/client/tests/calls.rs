//! Calls to a server in this process, and to addresses where none answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use runner_client::{CallError, Client, EvaluateFunctionRequest, Options, ServingStatus};
use runner_core::{Evaluation, EvaluationError, EvaluationFuture, Evaluator, Output, Reason};
use runner_service::{Lifecycle, ListenAt, Server, ServerOptions};
use tokio::net::TcpListener;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A runner whose function returns its input, fails, or never answers, by the name of its image.
struct Functions;

impl Evaluator for Functions {
    fn evaluate(&self, evaluation: Evaluation) -> EvaluationFuture<'_> {
        Box::pin(async move {
            match &*evaluation.image {
                "busy" => Err(EvaluationError::new(Reason::QueueFull, "256 are waiting")
                    .with("image", "busy")
                    .retry_in(Duration::from_secs(2))),
                "hangs" => std::future::pending().await,
                _ => Ok(Output {
                    resource_list: evaluation.resource_list,
                    ..Output::default()
                }),
            }
        })
    }
}

async fn server() -> (String, Lifecycle) {
    let lifecycle = Lifecycle::default();
    lifecycle.ready();
    let options = ServerOptions {
        message_limit: 1 << 20,
        ..ServerOptions::default()
    };
    let at = ListenAt {
        address: Some([127, 0, 0, 1].into()),
        port: 0,
    };
    let server = Server::bind(at, Arc::new(Functions), lifecycle.clone(), options)
        .await
        .unwrap();
    let address = server.address().unwrap().to_string();
    tokio::spawn(server.serve());
    (address, lifecycle)
}

fn client(address: &str) -> Client {
    Client::new(address, &Options::default()).unwrap()
}

fn request(image: &str) -> EvaluateFunctionRequest {
    EvaluateFunctionRequest {
        image: image.to_owned(),
        resource_list: Bytes::from("kind: ResourceList\n"),
        ..EvaluateFunctionRequest::default()
    }
}

/// Copies connections to a server and counts them.
async fn counting_relay(server: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut target = tokio::net::TcpStream::connect(&server).await.unwrap();
            tokio::spawn(
                async move { tokio::io::copy_bidirectional(&mut stream, &mut target).await },
            );
        }
    });
    (address, connections)
}

#[tokio::test]
async fn sends_all_calls_over_one_connection() {
    let (address, connections) = counting_relay(server().await.0).await;
    let client = client(&address);
    assert_eq!(connections.load(Ordering::Relaxed), 0, "connects lazily");
    for _ in 0..3 {
        let response = client.evaluate(request("echo"), TIMEOUT).await.unwrap();
        assert_eq!(response.resource_list, "kind: ResourceList\n");
    }
    let health = client.health("", TIMEOUT).await.unwrap();
    assert_eq!(health, ServingStatus::Serving);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn returns_the_error_of_an_evaluation_with_its_details() {
    let (address, _) = server().await;
    let error = client(&address).evaluate(request("busy"), TIMEOUT).await;
    let Err(CallError::Evaluation(error)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (error.reason(), error.message()),
        (Reason::QueueFull, "256 are waiting")
    );
    assert_eq!(error.fact("image"), Some("busy"));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
}

#[tokio::test]
async fn ends_a_call_at_its_time_limit() {
    let (address, _) = server().await;
    let limit = Duration::from_millis(50);
    let error = client(&address).evaluate(request("hangs"), limit).await;
    let error = error.unwrap_err();
    // The server reports the deadline itself if its answer comes first.
    let is_deadline = match &error {
        CallError::Timeout { timeout, .. } => *timeout == limit,
        CallError::Evaluation(error) => error.reason() == Reason::DeadlineExceeded,
        _ => false,
    };
    assert!(is_deadline, "{error:?}");
}

#[tokio::test]
async fn does_not_send_a_request_over_the_limit() {
    let options = Options {
        message_limit: 10,
        ..Options::default()
    };
    // No server listens at this address, so a request that is sent fails differently.
    let client = Client::new("127.0.0.1:1", &options).unwrap();
    let error = client.evaluate(request("echo"), TIMEOUT).await.unwrap_err();
    assert!(
        matches!(error, CallError::RequestTooLarge { limit: 10, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn reports_an_address_where_no_server_listens() {
    let error = client("127.0.0.1:1").status(TIMEOUT).await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    assert!(error.is_unreachable());
    let text = runner_core::with_causes(&error);
    assert!(
        text.starts_with("cannot reach a function runner at 127.0.0.1:1: Connection refused"),
        "{text}"
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn reports_a_server_without_the_status_service() {
    let (address, _) = server().await;
    let error = client(&address).status(TIMEOUT).await.unwrap_err();
    assert!(matches!(error, CallError::NotOffered { .. }), "{error:?}");
    assert!(!error.is_unreachable());
}

#[tokio::test]
async fn connects_again_after_the_server_was_restarted() {
    let (address, lifecycle) = server().await;
    let client = client(&address);
    client.health("", TIMEOUT).await.unwrap();
    lifecycle.drain(Duration::ZERO);
    let listener = loop {
        // The port is free once the server has stopped.
        match TcpListener::bind(&address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    drop(listener);
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let at = ListenAt {
        address: Some([127, 0, 0, 1].into()),
        port,
    };
    let options = ServerOptions {
        message_limit: 1 << 20,
        ..ServerOptions::default()
    };
    let again = Server::bind(at, Arc::new(Functions), Lifecycle::default(), options);
    tokio::spawn(again.await.unwrap().serve());
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while let Err(error) = client.health("", TIMEOUT).await {
        assert!(error.is_unreachable(), "{error:?}");
        assert!(tokio::time::Instant::now() < deadline, "{error:?}");
    }
}
