use std::{net::TcpListener, time::Duration};

use rstest::rstest;
use runner_core::{EvaluationError, Reason};
use runner_proto::status::encode;
use runner_test_support::{FakeRunner, Function, Package, free_address};
use tonic::Status;

use crate::support::{DEPLOYMENT, eval, eval_at, krm};

#[test]
fn reports_a_failed_function_with_its_facts() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::fails(|| {
        let message = "failed to evaluate function \"example.com/fn:v1\" with structured results: \
                       [error] v1/Service/web: no namespace and stderr: ";
        encode(
            &EvaluationError::new(Reason::FunctionFailed, message)
                .with("exit_code", "1")
                .with("evaluator", "exec"),
        )
    }));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr);
    assert_eq!(package.files()["web.yaml"], DEPLOYMENT);
}

#[test]
fn adds_a_hint_to_the_error_for_an_unknown_function() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::fails(|| {
        encode(&EvaluationError::not_found(
            "no runtime knows example.com/fn:v1",
        ))
    }));
    let run = eval(&runner, &[package.arg()]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr);
}

#[test]
fn reports_the_address_of_an_unreachable_runner() {
    let address = free_address();
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let run = eval_at(address, &[package.arg()], "");
    assert_eq!(run.code, 3);
    assert!(run.stderr.starts_with(&format!(
        "error: cannot reach a function runner at {address}: "
    )));
    assert!(
        run.stderr.contains("hint: start a runner"),
        "{}",
        run.stderr
    );
}

#[test]
fn stops_waiting_for_a_function_at_the_deadline() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::Hangs);
    let run = eval(&runner, &["--timeout", "300ms", package.arg()]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr);
}

#[test]
fn reports_a_lost_connection_as_unreachable() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::fails(|| Status::unavailable("connection closed")));
    let run = eval(&runner, &[package.arg()]);
    assert_eq!(run.code, 3);
    assert!(
        run.stderr.contains("was lost: connection closed"),
        "{}",
        run.stderr
    );
}

#[test]
fn reports_a_server_that_does_not_use_grpc() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let run = eval_at(address, &[package.arg()], "");
    server.join().unwrap();
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("does not speak gRPC"), "{}", run.stderr);
}

#[test]
fn does_not_send_a_package_over_the_limit() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::identity());
    let run = eval(&runner, &["--max-message-size", "100", package.arg()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("too large to send"), "{}", run.stderr);
    assert!(
        run.stderr.contains("--max-request-body-size"),
        "{}",
        run.stderr
    );
}

#[test]
fn rejects_an_answer_over_the_limit() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        format!("{list}# {}\n", "x".repeat(100_000))
    }));
    let run = eval(&runner, &["--max-message-size", "50000", package.arg()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("over the limit"), "{}", run.stderr);
    assert!(run.stderr.contains("--max-message-size"), "{}", run.stderr);
}

#[test]
fn rejects_an_answer_that_is_not_a_list() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::edits(|_| "Hello!\n".to_owned()));
    let run = eval(&runner, &["-i", package.arg()]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("answer is not a ResourceList"),
        "{}",
        run.stderr
    );
    assert_eq!(package.files()["web.yaml"], DEPLOYMENT);
}

#[rstest]
#[case::no_image(&["eval", "."], "--image")]
#[case::empty_image(&["eval", "--image", "", "."], "--image is empty")]
#[case::unknown_flag(&["eval", "--imgae", "x"], "--imgae")]
#[case::not_a_pair(&["eval", "--image", "x", ".", "pair"], "\"pair\" is not KEY=VALUE")]
#[case::twice(&["eval", "--image", "x", ".", "a=1", "a=2"], "\"a\" is given twice")]
#[case::bad_timeout(&["eval", "--image", "x", "--timeout", "soon", "."], "--timeout")]
#[case::bad_address(&["eval", "--image", "x", "--address", "nowhere", "."], "--address \"nowhere\" is not HOST:PORT")]
#[case::missing_config(&["eval", "--image", "x", "--fn-config", "/no/such", "."], "cannot read --fn-config /no/such")]
#[case::config_and_pairs(&["eval", "--image", "x", "--fn-config", "/no/such", ".", "a=b"], "not both")]
#[case::in_place_from_stdin(&["eval", "--image", "x", "-i", "-"], "--in-place needs a directory")]
#[case::missing_ca(&["eval", "--image", "x", "--ca-file", "/no/such", "."], "cannot read --ca-file /no/such")]
#[case::key_alone(&["eval", "--image", "x", "--key-file", "/no/such", "."], "--cert-file")]
fn rejects_a_wrong_command_line_with_code_2(#[case] arguments: &[&str], #[case] message: &str) {
    // An empty directory is an empty package, in every working directory.
    let package = Package::new(&[]);
    let arguments: Vec<&str> = arguments
        .iter()
        .map(|part| if *part == "." { package.arg() } else { *part })
        .collect();
    let run = krm(&arguments, "");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains(message), "{}", run.stderr);
}

#[test]
fn reports_a_missing_package() {
    let run = krm(&["eval", "--image", "x", "/no/such/package"], "");
    assert_eq!(run.code, 1);
    assert_eq!(
        run.stderr,
        "error: /no/such/package is not a directory; name the package's directory\n"
    );
}
