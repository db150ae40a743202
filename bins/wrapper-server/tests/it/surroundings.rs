//! Tests of root directories, users and limits that an image or pod may have.

use runner_test_support::{LIST, Request, error_of, list_of, log_of};
use tonic::Code;

use crate::support::{PodLimit, Root, Setup, set_label};

const WRAPPER: &str = "/wrapper-server";

#[tokio::test(flavor = "multi_thread")]
async fn runs_a_static_function_in_an_empty_root() {
    let root = Root::empty();
    root.add(set_label(), "/set-label");
    let wrapper = Setup::new(&["/set-label"])
        .under(root.enter())
        .program(WRAPPER)
        .start()
        .await;
    let client = wrapper.client().await;
    for _ in 0..3 {
        let list = list_of(client.call("set-label").await);
        assert!(list.contains("tier: \"front\""), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_a_bare_name_in_the_path_of_a_busybox_root() {
    let root = Root::busybox();
    let wrapper = Setup::new(&["sh", "-c", "echo from busybox >&2; cat"])
        .under(root.enter())
        .program(WRAPPER)
        .start()
        .await;
    let answer = wrapper.client().await.call("sh").await;
    assert_eq!(log_of(answer), "from busybox\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_as_any_user() {
    let root = Root::empty();
    let wrapper = Setup::script("id -u >&2; id -g >&2; cat")
        .nobody()
        .program(root.at(WRAPPER))
        .start()
        .await;
    let answer = wrapper.client().await.call("id").await;
    assert_eq!(log_of(answer), "10001\n10001\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_in_a_read_only_root() {
    let root = Root::busybox();
    let wrapper = Setup::script("said=$( (echo > /file) 2>&1) || echo refused >&2; cat")
        .under(root.enter_read_only())
        .program(WRAPPER)
        .start()
        .await;
    let answer = wrapper.client().await.call("sh").await;
    assert_eq!(log_of(answer), "refused\n");
    assert!(!root.at("/file").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn evaluates_lists_of_5_mb_in_a_pod_of_64_mb() {
    let limit = PodLimit::memory(64 << 20);
    let script = "list=$(cat); case $list in *greedy*) exec tail < /dev/zero;; esac; printf '%s\n' \"$list\"";
    let wrapper = Setup::script(script).under(limit.enter()).start().await;
    let client = wrapper.client().await;
    let large = format!("{LIST}# {}\n", "x".repeat(5 << 20));
    for _ in 0..5 {
        let call = || client.send(Request::of("cat").list(large.clone()));
        let (one, other) = tokio::join!(call(), call());
        assert_eq!(
            (list_of(one), list_of(other)),
            (large.clone(), large.clone())
        );
    }
    // A function that uses up all memory fails without affecting the others.
    let greedy = Request::of("greedy").list(format!("{LIST}# greedy\n"));
    let error = error_of(client.send(greedy).await, Code::Internal);
    assert_eq!(error.reason(), runner_core::Reason::FunctionFailed);
    assert_eq!(list_of(client.call("cat").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_at_most_two_functions_at_once_on_one_core() {
    let directory = tempfile::tempdir().unwrap();
    // A function that finds two others running reports that there are too many.
    let script = format!(
        "list=$(cat; echo .); mine=; for n in 1 2; do mkdir {0}$n && mine={0}$n && break; done; \
         sleep 0.05; if [ \"$mine\" ]; then rmdir $mine; else echo crowd >&2; fi; \
         printf %s \"${{list%.}}\"",
        directory.path().join("busy").display()
    );
    let crowds = async |setup: Setup| {
        let wrapper = setup.start().await;
        let client = wrapper.client().await;
        let calls = (0..8).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("fn").await })
        });
        let mut crowds = 0;
        for call in calls.collect::<Vec<_>>() {
            crowds += log_of(call.await.unwrap()).matches("crowd").count();
        }
        crowds
    };
    let limit = PodLimit::one_core();
    let limited = Setup::script(&script).under(limit.enter());
    assert_eq!(crowds(limited).await, 0);
    let free = Setup::script(&script).flag("--max-parallel=4");
    assert_ne!(crowds(free).await, 0);
}
