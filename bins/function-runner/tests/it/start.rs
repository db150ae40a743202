//! Tests of successful and failed starts: one sentence per failure, no backtrace, never code 0.

use std::{fs, net::TcpListener};

use runner_core::Reason;
use runner_test_support::{
    Ended, LIST, Request, error_of,
    http_server::{Reply, Server},
    list_of,
};
use serde_json::json;
use tonic::Code;

use crate::support::{Runner, Setup};

const CONFIG: &str = "functions:\n- function: cat\n  images: [example.com/fn/cat:v1]\n";

fn refuses(flags: &[String]) -> Ended {
    let mut all = vec![
        "--port=0",
        "--listen-address=127.0.0.1",
        "--log-format=json",
        "--disable-runtimes=pod",
    ];
    all.extend(flags.iter().map(String::as_str));
    let ended = Runner::refuses(&all);
    for noise in ["panicked", "backtrace", "stack"] {
        assert!(!ended.stderr.contains(noise), "{}", ended.stderr);
    }
    ended
}

/// Returns the error message of a failed start.
fn sentence(flags: &[String]) -> String {
    let ended = refuses(flags);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    ended.message("function-runner").to_owned()
}

#[test]
fn names_an_invalid_flag_and_exits_with_2() {
    for (flag, named) in [
        ("--no-such-flag", "--no-such-flag"),
        ("-prot=1", "--prot"),
        ("--port=http", "--port"),
        ("--drain-timeout=soon", "--drain-timeout"),
        ("--warm-up-pod-cache=maybe", "--warm-up-pod-cache"),
        ("--max-request-body-size=-1", "--max-request-body-size"),
        ("--log-level=much", "--log-level"),
        ("stray", "stray"),
    ] {
        let ended = refuses(&[flag.to_owned()]);
        assert_eq!(ended.code, Some(2), "{flag}: {}", ended.stderr);
        let first = ended.stderr.lines().next().unwrap_or_default();
        assert!(first.contains(named), "{flag}: {}", ended.stderr);
    }
}

#[test]
fn suggests_a_similar_flag_for_an_unknown_one() {
    for (flag, suggested) in [("--prot=1", Some("'--port'")), ("--nosuchflag", None)] {
        let ended = refuses(&[flag.to_owned()]);
        let tip = ended.stderr.lines().find(|line| line.contains("tip:"));
        let found = tip.and_then(|tip| tip.split(' ').next_back());
        assert_eq!(found, suggested, "{flag}: {}", ended.stderr);
        let usage = ended.stderr.lines().find(|line| line.contains("Usage:"));
        let usage = usage.unwrap_or_default();
        assert!(usage.ends_with("[OPTIONS]"), "{usage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_log_level_above_the_highest() {
    let runner = Setup::new().flag("--log-level=6").start().await;
    let client = runner.client().await;
    error_of(client.call("cat").await, Code::NotFound);
}

#[test]
fn names_a_missing_functions_directory() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    fs::write(&config, CONFIG).unwrap();
    let functions = directory.path().join("nowhere");
    let flags = [
        format!("--config={}", config.display()),
        format!("--functions={}", functions.display()),
    ];
    let sentence = sentence(&flags);
    for part in [config.to_str(), functions.to_str(), Some("--functions")] {
        assert!(sentence.contains(part.unwrap()), "{sentence}");
    }
}

#[test]
fn names_an_unreadable_config_file() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.yaml");
    for path in [missing.as_path(), directory.path()] {
        let sentence = sentence(&[format!("--config={}", path.display())]);
        assert!(sentence.contains("cannot read"), "{sentence}");
        assert!(sentence.contains(path.to_str().unwrap()), "{sentence}");
    }
}

#[test]
fn names_file_and_line_of_a_malformed_config() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    for (text, line) in [
        ("functions:\n- function: [\n", 2),
        ("- function: cat\n", 1),
        (
            "functions:\n- function: cat\n  images: [example.com/BAD:v1]\n",
            3,
        ),
        ("functions:\n- images: [example.com/fn:v1]\n", 2),
        (
            "functions:\n- function: cat\n  images: example.com/fn:v1\n",
            3,
        ),
    ] {
        fs::write(&config, text).unwrap();
        let sentence = sentence(&[format!("--config={}", config.display())]);
        let place = format!("{}:{line}: ", config.display());
        assert!(sentence.contains(&place), "{text:?}: {sentence}");
    }
}

#[test]
fn names_a_port_that_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let sentence = sentence(&[format!("--port={}", address.port())]);
    assert!(sentence.contains(&address.to_string()), "{sentence}");
    assert!(sentence.contains("in use"), "{sentence}");
}

#[test]
fn names_unusable_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let nonsense = directory.path().join("nonsense.pem");
    fs::write(&nonsense, "no certificate\n").unwrap();
    let missing = directory.path().join("missing.pem");
    let flags = |certificate: &std::path::Path, key: &std::path::Path| {
        [
            format!("--tls-cert-file={}", certificate.display()),
            format!("--tls-key-file={}", key.display()),
        ]
    };
    let unread = sentence(&flags(&missing, &nonsense));
    assert!(unread.contains("--tls-cert-file"), "{unread}");
    assert!(unread.contains(missing.to_str().unwrap()), "{unread}");
    let unread = sentence(&flags(&nonsense, &missing));
    assert!(unread.contains("--tls-key-file"), "{unread}");
    let unusable = sentence(&flags(&nonsense, &nonsense));
    assert!(
        unusable.contains("cannot use the TLS certificate"),
        "{unusable}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_without_any_configuration() {
    let runner = Setup::new().start().await;
    let error = error_of(runner.client().await.call("cat").await, Code::NotFound);
    assert_eq!(error.reason(), Reason::FunctionNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_with_a_warning_if_every_runtime_is_disabled() {
    let runner = Setup::with("cat", "cat")
        .flag("--disable-runtimes=exec,pod")
        .start()
        .await;
    let warning = runner.logged("no runtime is enabled").await;
    assert_eq!(warning["level"], "warn");
    let client = runner.client().await;
    for request in [Request::of("cat"), Request::image("anything")] {
        let error = error_of(client.send(request).await, Code::NotFound);
        assert_eq!(error.reason(), Reason::FunctionNotFound);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_the_files_of_disabled_runtimes() {
    let runner = Setup::with("cat", "cat")
        .flag("--disable-runtimes=exec,pod")
        .flag("--functions=/no/such/directory")
        .flag("--pod-cache-config=/no/such/file")
        .start()
        .await;
    runner.logged("no runtime is enabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warns_about_an_unknown_runtime_name() {
    let runner = Setup::with("cat", "cat")
        .flag("--disable-runtimes=wasm, pod")
        .start()
        .await;
    let warning = runner.logged("unknown runtime").await;
    assert_eq!(
        (&warning["level"], &warning["name"]),
        (&"warn".into(), &"wasm".into())
    );
    assert_eq!(list_of(runner.client().await.call("cat").await), LIST);
}

#[test]
fn rejects_a_pod_flag_without_a_wrapper_image() {
    let ended = Runner::refuses(&["--port=0", "--listen-address=127.0.0.1", "--pod-ttl=10m"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let said = ended.message("function-runner");
    for part in [
        "WRAPPER_SERVER_IMAGE",
        "--pod-ttl",
        "--disable-runtimes=pod",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_executables_without_a_wrapper_image() {
    let setup = Setup::with("cat", "cat").flag("--disable-runtimes=");
    let runner = setup.start().await;
    runner
        .logged("the pod runtime is off: WRAPPER_SERVER_IMAGE is not set")
        .await;
    runner
        .logged("FunctionConfig objects are not followed: no Kubernetes cluster is configured")
        .await;
    assert_eq!(list_of(runner.client().await.call("cat").await), LIST);
}

/// Starts an API server that returns one object for every list and 404 for everything else.
async fn api_server() -> Server {
    let object = json!({
        "metadata": {"name": "cat", "namespace": "porch-fn-system", "generation": 1},
        "spec": {"image": "object", "prefixes": ["example.com/fn"],
                 "binaryExecutor": {"path": "cat", "tags": ["~1"]}},
    });
    let list = json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "FunctionConfigList",
        "metadata": {"resourceVersion": "1"}, "items": [object],
    });
    Server::start(move |request| {
        let is_list =
            request.path.contains("/functionconfigs?") && !request.path.contains("watch=true");
        let (status, body) = if is_list {
            (200, list.to_string())
        } else {
            (404, "{}".to_owned())
        };
        Reply::new(status, body).with("Content-Type", "application/json")
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_executables_of_objects_without_the_pod_runtime() {
    let api_server = api_server().await;
    let address = api_server.host().parse().unwrap();
    let setup = Setup::with("cat", "cat").cluster(address);
    let runner = setup.flag("--disable-runtimes=pod").start().await;
    let client = runner.client().await;
    let request = Request::image("example.com/fn/object:v1.2.3");
    assert_eq!(list_of(client.send(request).await), LIST);
}
