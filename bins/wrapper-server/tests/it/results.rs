//! Tests of the results and error messages of functions, in the wording that authors expect.

use runner_core::Reason;
use runner_test_support::{LIST, Request, ServerProcess, error_of, list_of, log_of};
use tonic::Code;

use crate::support::Setup;

const RESULTS: &str = "results:
- message: too few
  severity: error
  resourceRef: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}
  field: {path: spec.replicas}
- message: looks old
  severity: warning
- message: seen
";

/// Starts a wrapper whose function prints its input, then `text`, and ends with the command `end`.
async fn printing(text: &str, end: &str) -> ServerProcess {
    let script = format!("cat\nprintf '%s' '{text}'\necho oh >&2\n{end}");
    Setup::script(&script).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_output_byte_for_byte_and_stderr_as_the_log() {
    let wrapper = printing("", "exit 0").await;
    let client = wrapper.client().await;
    let odd = "apiVersion: config.kubernetes.io/v1alpha1\r\nkind: 'ResourceList'\r\n# é\n\n";
    for list in [LIST, odd] {
        let answer = client.send(Request::of("fn").list(list)).await;
        assert_eq!(list_of(answer.clone()), list);
        assert_eq!(log_of(answer), "oh\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_results_of_severity_error_if_the_function_succeeds() {
    let wrapper = printing(RESULTS, "exit 0").await;
    let list = list_of(wrapper.client().await.call("fn").await);
    assert_eq!(list, format!("{LIST}{RESULTS}"));
    wrapper.logged("function reports errors").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_failure_with_structured_results() {
    let wrapper = printing(RESULTS, "exit 3").await;
    let error = error_of(wrapper.client().await.call("fn").await, Code::Internal);
    assert_eq!(
        error.message(),
        "failed to evaluate function \"example.com/fn/fn:v1\" with structured results: \
         [error] apps/v1/Deployment/shop/web spec.replicas: too few\n\n\
         [warning]: looks old\n\n\
         [info]: seen and stderr: oh"
    );
    assert_eq!(error.reason(), Reason::FunctionFailed);
    let facts = ["exit_code", "evaluator", "image"].map(|name| error.fact(name).unwrap());
    assert_eq!(facts, ["3", "wrapper", "example.com/fn/fn:v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_failure_without_a_list_with_stderr() {
    let wrapper = Setup::script("cat > /dev/null; printf '\\n oh\\r\\n\\tdear\\n' >&2; exit 3")
        .start()
        .await;
    let error = error_of(wrapper.client().await.call("fn").await, Code::Internal);
    assert_eq!(
        error.message(),
        "failed to parse the output of function \"example.com/fn/fn:v1\" with stderr ' oh | \tdear': \
         expected a ResourceList, found nothing"
    );
    assert_eq!(error.reason(), Reason::FunctionFailed);
    assert_eq!(error.fact("exit_code"), Some("3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_signal_that_killed_a_function() {
    let wrapper = Setup::script("cat; kill -SEGV $$").start().await;
    let error = error_of(wrapper.client().await.call("fn").await, Code::Internal);
    assert_eq!(error.reason(), Reason::FunctionFailed);
    assert_eq!(
        (error.fact("signal"), error.fact("exit_code")),
        (Some("11"), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_success_without_a_list_as_bad_output() {
    let kind = "apiVersion: config.kubernetes.io/v1\nkind: List\n";
    for (script, reason) in [
        ("cat > /dev/null", "expected a ResourceList, found nothing"),
        (
            "cat > /dev/null; echo hello",
            "line 1: expected a ResourceList, found no mapping",
        ),
        (&format!("cat > /dev/null; printf '{kind}'"), ""),
    ] {
        let wrapper = Setup::script(script).start().await;
        let error = error_of(wrapper.client().await.call("fn").await, Code::Internal);
        assert_eq!(error.reason(), Reason::BadOutput, "{script}");
        let words =
            "failed to parse the output of function \"example.com/fn/fn:v1\" with stderr '': ";
        let why = error.message().strip_prefix(words);
        let why = why.unwrap_or_else(|| panic!("{}", error.message()));
        assert!(why.contains(reason), "{why}");
        assert_eq!(error.fact("exit_code"), None);
    }
}
