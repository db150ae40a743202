//! Tests of functions in four languages, as their authors write them.

use std::path::Path;

use runner_test_support::{LIST, list_of};

use crate::support::{Setup, repository, set_label, set_namespace};

async fn evaluated(entrypoint: &[&Path]) -> (String, String) {
    let wrapper = Setup::new(entrypoint).start().await;
    let answer = wrapper.client().await.call("fn").await;
    let log = answer.as_ref().map(|answer| answer.log.to_vec());
    let log = String::from_utf8(log.unwrap_or_default()).unwrap();
    (list_of(answer), log)
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_shell_script() {
    let script = repository("tests/images/count/function.sh");
    let (list, log) = evaluated(&[Path::new("/bin/sh"), &script]).await;
    assert_eq!(list, LIST);
    assert_eq!(log, format!("count: {} bytes\n", LIST.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_python_program() {
    let script = repository("tests/images/annotate/function.py");
    let (list, _) = evaluated(&[Path::new("/usr/bin/python3"), &script]).await;
    assert!(list.contains("annotated 1 items"), "{list}");
    assert_eq!(list.matches("namespace: there").count(), 2, "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_rust_program() {
    let (list, _) = evaluated(&[set_label()]).await;
    assert!(
        list.contains("tier: \"front\"") && list.contains("# kept"),
        "{list}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_go_program_that_uses_kyaml() {
    let (list, log) = evaluated(&[set_namespace()]).await;
    assert!(list.contains("    namespace: there\n"), "{list}");
    assert_eq!(log, "set-namespace: 1 items\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_no_standby_for_a_function_that_ignores_its_input() {
    let list = LIST.replace('\n', "\\n");
    let wrapper = Setup::script(&format!("printf '{list}'")).start().await;
    let client = wrapper.client().await;
    assert_eq!(list_of(client.call("fn").await), LIST);
    let said = wrapper.logged("gets no standby").await;
    assert!(said.contains("ended (exit status 0) before its input arrived"));
    assert!(wrapper.children().is_empty());
    assert_eq!(list_of(client.call("fn").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_standby_off_by_a_variable() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let wrapper = Setup::script(&format!("echo >>{}; cat", starts.display()))
        .env("KRM_WRAPPER_STANDBY", "0")
        .start()
        .await;
    let client = wrapper.client().await;
    for calls in 1..=3 {
        assert_eq!(list_of(client.call("fn").await), LIST);
        let started = std::fs::read_to_string(&starts).unwrap();
        assert_eq!(started.lines().count(), calls);
    }
}
