//! Tests of successful evaluations and of the selection of functions.

use runner_test_support::{LIST, Request, eventually, list_of};

use crate::support::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn returns_output_byte_for_byte_with_the_log() {
    let runner = Setup::with("cat", "echo first >&2; cat; echo last >&2")
        .start()
        .await;
    let client = runner.client().await;
    for list in [
        LIST.to_owned(),
        format!("# a comment\n---\n{LIST}\n\n"),
        LIST.replace('\n', "\r\n"),
        format!("{LIST}data: !!binary aGk=\non: yes\nmode: 0755\nname: \u{1F980}"),
        r#"{"kind":"ResourceList","apiVersion":"config.kubernetes.io/v1alpha1","items":[]}"#.into(),
    ] {
        let answer = client
            .send(Request::of("cat").list(list.clone()))
            .await
            .unwrap();
        assert_eq!(answer.resource_list, list);
        assert_eq!(answer.log, "first\nlast\n");
    }
}

/// Long responses take a different path to the socket than short ones.
#[tokio::test(flavor = "multi_thread")]
async fn returns_lists_of_any_length_unchanged() {
    let runner = Setup::with("cat", "cat; echo done >&2").start().await;
    let client = runner.client().await;
    for kilobytes in [1, 63, 64, 65, 700, 5000] {
        let mut list = LIST.to_owned();
        while list.len() < kilobytes << 10 {
            list.push_str("# the quick brown fox jumps over the lazy dog\n");
        }
        let answer = client
            .send(Request::of("cat").list(list.clone()))
            .await
            .unwrap();
        assert!(answer.resource_list == list, "{kilobytes} kB changed");
        assert_eq!(answer.log, "done\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_and_logs_results_of_severity_error() {
    let script = "cat; printf 'results:\\n- message: too few\\n  severity: error\\n'";
    let runner = Setup::with("validate", script).start().await;
    let list = list_of(runner.client().await.call("validate").await);
    assert!(list.ends_with("severity: error\n"));
    let line = runner.logged("function reports errors").await;
    assert_eq!(line["results"], "[error]: too few");
    assert_eq!(line["image"], "example.com/fn/validate:v1");
}

/// Script of a function that returns the name under which it runs.
const WHO: &str = "cat >/dev/null; printf 'kind: ResourceList\\napiVersion: config.kubernetes.io/v1\\nname: %s' \"${0##*/}\"";

async fn who(client: &runner_test_support::Client, request: Request) -> String {
    let list = list_of(client.send(request).await);
    list.rsplit_once("name: ").unwrap().1.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn selects_a_tag_by_constraint() {
    let mut setup = Setup::new();
    for tag in ["v0.3.9", "v0.4.0", "v0.4.2", "v0.5.0", "stable"] {
        let image = format!("example.com/fn/who:{tag}");
        setup = setup.function_for(tag, WHO, &[&image]);
    }
    let runner = setup.start().await;
    let client = runner.client().await;
    for (image, tag, selected) in [
        ("example.com/fn/who:v0.4.0", "", "v0.4.0"),
        ("example.com/fn/who", ">= 0.4.0 < 0.5.0", "v0.4.2"),
        ("example.com/fn/who", "~0.3", "v0.3.9"),
        ("example.com/fn/who", "v0.4.0", "v0.4.0"),
        ("example.com/fn/who", "stable", "stable"),
        ("example.com/fn/who", "*", "v0.5.0"),
        ("example.com/fn/who:v0.3.9", ">= 0.4", "v0.5.0"),
    ] {
        let request = Request::image(image).tag(tag);
        assert_eq!(who(&client, request).await, selected, "{image} {tag}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_the_default_prefix_to_a_bare_name() {
    let runner = Setup::new()
        .function_for("ours", WHO, &["registry.example.com/ours/who:v1"])
        .function_for("theirs", WHO, &["example.com/fn/who:v1"])
        .flag("--default-image-prefix=registry.example.com/ours")
        .start()
        .await;
    let client = runner.client().await;
    assert_eq!(who(&client, Request::image("who:v1")).await, "ours");
    assert_eq!(who(&client, Request::of("who")).await, "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_an_image_with_a_digest() {
    let image = format!("example.com/fn/who@sha256:{}", "ab".repeat(32));
    let runner = Setup::new()
        .function_for("pinned", WHO, &[&image])
        .start()
        .await;
    assert_eq!(
        who(&runner.client().await, Request::image(image)).await,
        "pinned"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_compressed_request() {
    let runner = Setup::with("cat", "cat").start().await;
    let answer = runner.client().await.send(Request::of("cat").gzip()).await;
    assert_eq!(list_of(answer), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn evaluates_a_list_of_five_megabytes() {
    let runner = Setup::with("cat", "cat").start().await;
    let item = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: filler}}\n";
    let list = LIST.to_owned() + &item.repeat((5 << 20) / item.len());
    let client = runner.client().await;
    for gzip in [false, true] {
        let request = Request::of("cat").list(list.clone());
        let request = if gzip { request.gzip() } else { request };
        assert!(list_of(client.send(request).await) == list, "gzip: {gzip}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shortens_the_log_in_favor_of_the_output() {
    let script = "cat; echo first >&2; yes filler | head -c 30000 >&2; echo last >&2";
    let runner = Setup::with("chatty", script)
        .flag("--max-request-body-size=20000")
        .start()
        .await;
    let client = runner.client().await;
    for size in [0, 10_000, 19_800] {
        let list = format!("{LIST}#{}\n", "x".repeat(size - size.min(LIST.len() + 2)));
        let answer = client
            .send(Request::of("chatty").list(list.clone()))
            .await
            .unwrap();
        assert_eq!(answer.resource_list, list);
        assert!(list.len() + answer.log.len() < 20_000);
        if size < 19_000 {
            let log = String::from_utf8(answer.log.to_vec()).unwrap();
            assert!(log.starts_with("first") && log.ends_with("last\n"), "{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_log_that_just_fits_beside_the_output() {
    let runner = Setup::with("chatty", "cat; yes filler | head -c 10000 >&2")
        .flag("--max-request-body-size=20000")
        .start()
        .await;
    let client = runner.client().await;
    // Each of the two fields needs three bytes of the limit for its key and length.
    for (size, log) in [(9_994, 10_000), (9_995, 9_999)] {
        let list = format!("{LIST}#{}\n", "x".repeat(size - LIST.len() - 2));
        let answer = client.send(Request::of("chatty").list(list)).await.unwrap();
        assert_eq!(answer.resource_list.len(), size);
        assert!(answer.log.len() <= log, "{}", answer.log.len());
        let is_whole = answer.log.len() == 10_000;
        assert_eq!(is_whole, log == 10_000, "{}", answer.log.len());
        assert!(answer.log.len() > 9_900, "{}", answer.log.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_the_runners_environment_and_removes_scratch_files() {
    let script = "cat; env >&2; pwd >&2; touch left-behind";
    let runner = Setup::with("look", script)
        .flag("--standby=0")
        .start()
        .await;
    let answer = runner.client().await.call("look").await.unwrap();
    let log = String::from_utf8(answer.log.to_vec()).unwrap();
    assert!(log.contains("PATH="), "{log}");
    assert!(
        !log.contains("RUST_BACKTRACE") && !log.contains("CARGO"),
        "{log}"
    );
    let scratch = runner.setup.path("tmp");
    assert!(log.contains(scratch.to_str().unwrap()), "{log}");
    eventually("its directory is gone", || {
        let left = walk(&scratch);
        !left.iter().any(|path| path.ends_with("left-behind"))
    })
    .await;
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
    {
        found.extend(walk(&path));
        found.push(path);
    }
    found
}
