//! Tests of requests that name the file to run (`exec_path`), as newer versions of Porch send them.

use std::fs;

use runner_core::Reason;
use runner_test_support::{LIST, Request, error_of, list_of};
use tonic::Code;

use crate::support::Setup;

/// A one-line list, printed by functions that ignore their input.
const OTHER: &str = "{apiVersion: config.kubernetes.io/v1, kind: ResourceList}\n";

fn prints_other() -> String {
    format!("cat >/dev/null; printf '{}'", OTHER.replace('\n', "\\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_the_named_file_regardless_of_the_configuration() {
    let setup = Setup::with("configured", &prints_other());
    setup.script("named", "cat");
    let named = setup.path("functions").join("named");
    let runner = setup.start().await;
    let client = runner.client().await;
    for image in [
        "example.com/fn/configured:v1",
        "example.com/fn/unknown:v1",
        "",
        "NO image",
    ] {
        let request = Request::image(image).exec_path(&named);
        assert_eq!(list_of(client.send(request).await), LIST, "{image}");
    }
    // Callers use the path that the functions directory has in Porch's images.
    let request = Request::of("unknown").exec_path("/home/nonroot/functions/named");
    assert_eq!(list_of(client.send(request).await), LIST);
    let request = Request::of("unknown").exec_path(&named).tag(">= nonsense");
    assert_eq!(list_of(client.send(request).await), LIST);
    let failing = Request::of("fn").exec_path("/home/nonroot/functions/configured");
    assert_eq!(list_of(client.send(failing).await), OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn falls_back_to_the_configuration_for_a_missing_file() {
    let setup = Setup::with("configured", &prints_other());
    setup.file("plain", "", 0o644);
    let functions = setup.path("functions");
    let runner = setup.start().await;
    let client = runner.client().await;
    for name in ["gone", "plain"] {
        let request = Request::of("configured").exec_path(functions.join(name));
        assert_eq!(list_of(client.send(request).await), OTHER);
    }
    let image = "example.com/fn/unknown:v1";
    for (name, says) in [
        ("gone", "no such file or directory"),
        ("plain", "permission denied"),
    ] {
        let path = functions.join(name);
        let request = Request::of("unknown").exec_path(&path);
        let error = error_of(client.send(request).await, Code::Internal);
        assert_eq!(error.reason(), Reason::FunctionFailed);
        let path = path.display();
        assert_eq!(
            error.message(),
            format!("Failed to execute function \"{image}\": fork/exec {path}: {says} ()")
        );
    }
    let gone = "/home/nonroot/functions/gone";
    let error = client.send(Request::of("unknown").exec_path(gone)).await;
    let error = error_of(error, Code::Internal);
    assert!(error.message().contains(gone), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_an_outside_file_unless_configured() {
    let setup = Setup::with("inside", "cat");
    let elsewhere = setup.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    setup.script("script", "cat");
    for name in ["secret", "named"] {
        fs::copy(setup.path("functions/script"), elsewhere.join(name)).unwrap();
    }
    let link = setup.path("functions/link");
    std::os::unix::fs::symlink(elsewhere.join("secret"), &link).unwrap();
    let dots = setup.path("functions/../elsewhere/secret");
    let named = elsewhere.join("named");
    let runner = setup
        .entry(named.to_str().unwrap(), &["example.com/fn/named:v1"])
        .start()
        .await;
    let client = runner.client().await;
    for path in [elsewhere.join("secret"), link, dots, "/bin/cat".into()] {
        let request = Request::of("unknown").exec_path(&path);
        let error = error_of(client.send(request).await, Code::Unknown);
        assert_eq!(error.reason(), Reason::ExecPathOutside);
        let says = format!("exec_path {path:?} is outside functions dir");
        assert_eq!(error.message(), says);
    }
    let request = Request::of("unknown").exec_path(&named);
    assert_eq!(list_of(client.send(request).await), LIST);
    let request = Request::of("inside").exec_path("/bin/false");
    assert_eq!(list_of(client.send(request).await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_any_absolute_path_with_exec_absolute_paths() {
    let runner = Setup::new().flag("--exec-absolute-paths").start().await;
    let client = runner.client().await;
    let request = Request::of("unknown").exec_path("/bin/cat");
    assert_eq!(list_of(client.send(request).await), LIST);
    let request = Request::of("unknown").exec_path("cat");
    error_of(client.send(request).await, Code::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_internal_for_a_named_file_without_the_exec_runtime() {
    let runner = Setup::new()
        .flag("--disable-runtimes=exec,pod")
        .start()
        .await;
    let client = runner.client().await;
    let request = Request::of("unknown").exec_path("/home/nonroot/functions/x");
    let error = error_of(client.send(request).await, Code::Internal);
    let path = "/home/nonroot/functions/x: no such file or directory";
    assert!(error.message().contains(path), "{error}");
}
