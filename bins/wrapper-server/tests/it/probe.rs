//! Tests of `grpc-health-probe`: the flags and exit codes that pod templates rely on.

use std::{
    net::{Ipv4Addr, TcpListener as StdListener},
    process::{Command, Output},
};

use runner_service::{Health, Lifecycle};
use runner_test_support::{ServerProcess, free_address};
use tokio::{net::TcpListener, task::spawn_blocking};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::support::{Root, Setup};

/// Runs the probe with these flags; returns its exit code and output.
async fn probe(flags: &[&str]) -> (i32, String) {
    let tools = Root::empty();
    tools.link("wrapper-server", "/grpc-health-probe");
    let mut command = Command::new(tools.at("/grpc-health-probe"));
    command.args(flags);
    let output: Output = spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(said).unwrap(),
    )
}

async fn serving() -> (ServerProcess, String) {
    let wrapper = Setup::script("cat").start().await;
    let address = format!("localhost:{}", wrapper.address.port());
    (wrapper, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_with_0_for_a_serving_wrapper() {
    let (_wrapper, address) = serving().await;
    for flags in [
        &["-addr", &address][..],
        &[
            "--addr",
            &address,
            "-connect-timeout",
            "5s",
            "-rpc-timeout=5000ms",
            "-v",
        ],
        &[
            "-addr",
            &address,
            "-service",
            "evaluator.FunctionEvaluator",
            "-tls=false",
        ],
    ] {
        let (code, said) = probe(flags).await;
        assert_eq!(code, 0, "{flags:?}: {said}");
        assert!(said.starts_with("status: SERVING\n"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_with_1_for_invalid_arguments() {
    for (flags, says) in [
        (&[][..], "-addr not specified"),
        (&["-addr", "localhost:1", "-nope"], "unknown flag -nope"),
        (&["-addr", "localhost:1", "-tls"], "-tls is not supported"),
        (
            &["-addr", "localhost:1", "-rpc-timeout", "0s"],
            "greater than zero",
        ),
    ] {
        let (code, said) = probe(flags).await;
        assert_eq!(code, 1, "{flags:?}: {said}");
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_with_2_if_the_server_is_unreachable() {
    let address = free_address().to_string();
    let (code, said) = probe(&["-addr", &address]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("failed to connect service"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_with_3_without_an_answer_or_on_an_error() {
    let silent = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (code, said) = probe(&["-addr", &address, "-rpc-timeout", "200ms"]).await;
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("did not complete within 200ms"), "{said}");

    let (_wrapper, address) = serving().await;
    let (code, said) = probe(&["-addr", &address, "-service", "other"]).await;
    assert_eq!(code, 3, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_with_4_for_a_server_that_is_not_serving() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let starting = Health::server(Lifecycle::default(), None);
    let server = Server::builder()
        .add_service(starting)
        .serve_with_incoming(TcpListenerStream::new(listener));
    let server = tokio::spawn(server);
    let (code, said) = probe(&["-addr", &address]).await;
    server.abort();
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("NOT_SERVING"), "{said}");
}
