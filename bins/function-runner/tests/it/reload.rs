//! Tests of changes to config.yaml while the runner serves.

use std::fs;

use runner_test_support::{Client, LIST, error_of, eventually_async, list_of};
use tonic::Code;

use crate::support::Setup;

const BOTH: &str = "\
functions:
- function: cat
  images: [example.com/fn/cat:v1]
- function: more
  images: [example.com/fn/more:v1]
";

/// Calls a function until it is found.
async fn call_until_found(client: &Client, name: &str) -> String {
    let call = async || match client.call(name).await {
        Err(status) if status.code() == Code::NotFound => None,
        answer => Some(list_of(answer)),
    };
    eventually_async("the edit takes effect", call).await
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_a_function_without_a_restart() {
    let runner = Setup::with("cat", "cat").start().await;
    let client = runner.client().await;
    error_of(client.call("more").await, Code::NotFound);
    runner.setup.script("more", "cat");
    fs::write(runner.setup.config_file(), BOTH).unwrap();
    assert_eq!(call_until_found(&client, "more").await, LIST);
    assert_eq!(list_of(client.call("cat").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn detects_a_file_replaced_by_renaming() {
    let runner = Setup::with("cat", "cat").start().await;
    runner.setup.script("more", "cat");
    let new = runner.setup.path("config.yaml.new");
    fs::write(&new, BOTH).unwrap();
    fs::rename(new, runner.setup.config_file()).unwrap();
    assert_eq!(call_until_found(&runner.client().await, "more").await, LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_last_good_table_after_a_bad_edit() {
    let runner = Setup::with("cat", "cat").start().await;
    let client = runner.client().await;
    let bad = BOTH.replace("example.com/fn/more:v1", "example.com/BAD:v1");
    fs::write(runner.setup.config_file(), bad).unwrap();
    runner.logged("rejected, the last good one stays").await;
    let line = runner.logged("malformed image").await;
    assert_eq!(line["level"], "error");
    assert!(
        line["source"].as_str().unwrap().ends_with("config.yaml:5"),
        "{line}"
    );
    assert_eq!(list_of(client.call("cat").await), LIST);

    runner.setup.script("more", "cat");
    fs::write(runner.setup.config_file(), BOTH).unwrap();
    assert_eq!(call_until_found(&client, "more").await, LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_a_replaced_executable_for_the_next_call() {
    let runner = Setup::with("cat", "cat").start().await;
    let client = runner.client().await;
    assert_eq!(list_of(client.call("cat").await), LIST);
    let new = runner.setup.path("functions").join("cat");
    fs::remove_file(&new).unwrap();
    runner.setup.script("cat", "sed s/kept/changed/");
    assert!(list_of(client.call("cat").await).contains("changed"));
}
