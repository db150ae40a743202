use std::{fs, time::Duration};

use rstest::rstest;
use runner_core::{ImageReference, with_causes};

use super::*;
use crate::{Wanted, testing::*};

const GOOD: &str = "functions: [{function: fn, images: ['fn:v1']}]";

fn has_binary(configuration: &Configuration, image: &str) -> bool {
    let image = ImageReference::qualified(image, DEFAULT_PREFIX).unwrap();
    configuration.table().executable(&image, None).is_some()
}

/// Waits for the first table that satisfies the condition.
async fn until(configuration: &Configuration, condition: impl Fn(&Table) -> bool) {
    let mut changes = configuration.watch();
    let wait = async {
        while !condition(&configuration.table()) {
            changes.changed().await.unwrap();
        }
    };
    let limit = Duration::from_secs(20);
    if tokio::time::timeout(limit, wait).await.is_err() {
        panic!("the table never came: {:?}", configuration.table());
    }
}

#[test]
fn loads_without_optional_files() {
    let fixture = Fixture::new();
    let mut options = fixture.options();
    options.functions_dir = fixture.path("no-such-directory");
    assert!(Configuration::load(options).unwrap().table().is_empty());
}

#[rstest]
#[case::config("config.yaml", "--config")]
#[case::pod_cache("pod-cache-config.yaml", "--pod-cache-config")]
fn reports_a_missing_required_file(#[case] name: &str, #[case] flag: &str) {
    let fixture = Fixture::new();
    let mut options = fixture.options();
    match flag {
        "--config" => options.config_wanted = Wanted::Required,
        _ => options.pod_cache_wanted = Wanted::Required,
    }
    let error = with_causes(&Configuration::load(options).unwrap_err());
    assert!(
        error.starts_with("cannot read ") && error.contains(&format!("{name} ({flag}): ")),
        "{error}"
    );
}

#[test]
fn does_not_read_unwanted_files() {
    let fixture = Fixture::new().config("functions: [").pod_cache("- [");
    let mut options = fixture.options();
    options.config_wanted = Wanted::No;
    options.pod_cache_wanted = Wanted::No;
    assert!(Configuration::load(options).unwrap().table().is_empty());
}

#[test]
fn reports_a_missing_functions_directory_if_functions_are_listed() {
    let fixture = Fixture::new().config(GOOD);
    let mut options = fixture.options();
    options.functions_dir = fixture.path("no-such-directory");
    let error = with_causes(&Configuration::load(options).unwrap_err());
    assert!(error.contains("config.yaml lists functions"), "{error}");
    assert!(
        error.contains("no-such-directory") && error.contains("--functions"),
        "{error}"
    );
    assert!(
        error.ends_with(": No such file or directory (os error 2)"),
        "{error}"
    );
}

#[rstest]
#[case::yaml("functions: [", ":1: ", "unclosed bracket")]
#[case::wrong_type("functions:\n- function: {}\n", ":2: ", "")]
#[case::no_function("functions:\n- images: ['fn:v1']\n", ":2: ", "function")]
#[case::empty_function("functions:\n\n- function: ''\n", ":3: ", "is empty")]
#[case::image(
    "functions:\n- function: fn\n  images:\n  - fn:v1\n  - x//y\n",
    ":5: ",
    "malformed image \"x//y\""
)]
#[case::twice("functions: []\nfunctions: []\n", ":2: ", "duplicate")]
#[case::a_list("- function: fn\n", ":1: ", "expected a map")]
fn refuses_a_malformed_config_at_start(#[case] text: &str, #[case] line: &str, #[case] says: &str) {
    let fixture = Fixture::new().config(text);
    let error = with_causes(&Configuration::load(fixture.options()).unwrap_err());
    assert!(error.contains(&format!("config.yaml{line}")), "{error}");
    assert!(error.contains(says), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[rstest]
#[case::duration("- name: fn:v1\n  timeToLive: 10 minutes\n", 2, "malformed duration")]
#[case::negative("- name: fn:v1\n  maxWaitlistLength: -1\n", 2, "-1 is not a count")]
#[case::quantity(
    "- name: fn:v1\n  resources:\n    limits: {memory: 1GB}\n",
    3,
    "\"1GB\" is not a Kubernetes quantity"
)]
#[case::image("- name: 'fn:'\n", 1, "tag is empty")]
#[case::map_duration("fn:v1: 10m\nfn:v2: ten\n", 2, "malformed duration \"ten\"")]
#[case::scalar("hello", 1, "expected a list")]
fn refuses_a_malformed_pod_cache_config_at_start(
    #[case] text: &str,
    #[case] line: u64,
    #[case] says: &str,
) {
    let fixture = Fixture::new().pod_cache(text);
    let error = with_causes(&Configuration::load(fixture.options()).unwrap_err());
    assert!(
        error.contains(&format!("pod-cache-config.yaml:{line}: ")),
        "{error}"
    );
    assert!(error.contains(says), "{error}");
}

#[rstest]
#[case::empty("")]
#[case::comment("# nothing yet\n")]
#[case::null("functions:\n")]
#[case::no_images("functions:\n- function: fn\n")]
fn accepts_an_empty_config(#[case] text: &str) {
    let fixture = Fixture::new().config(text).pod_cache("\n");
    let configuration = fixture.configuration();
    assert!(configuration.table().is_empty());
    assert_eq!(configuration.table().problems(), []);
}

#[test]
fn warns_of_unknown_fields_with_their_line() {
    let fixture = Fixture::new()
        .binaries(&["fn"])
        .config("version: 1\nfunctions:\n- function: fn\n  image: fn:v1\n")
        .pod_cache("- name: fn:v1\n  ttl: 5m\n  resources:\n    request: {cpu: 1}\n");
    let configuration = fixture.configuration();
    let table = configuration.table();
    let problems: Vec<String> = table.problems().iter().map(ToString::to_string).collect();
    let expected = [
        ("config.yaml:1: ", "\"version\""),
        ("config.yaml:4: ", "\"image\""),
        ("pod-cache-config.yaml:2: ", "\"ttl\""),
        ("pod-cache-config.yaml:4: ", "\"request\""),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, (location, field)) in problems.iter().zip(expected) {
        assert!(
            problem.contains(location) && problem.contains(field),
            "{problem}"
        );
    }
}

#[test]
fn reads_settings_from_the_pod_cache_file() {
    let fixture = Fixture::new().pod_cache(
        r"
- name: ghcr.io/x/fn:v0.2.0
  timeToLive: 1h30m
  maxWaitlistLength: 2
  maxParallelPodsPerFunction: 0
  resources: {requests: {cpu: 1}, limits: {memory: 256Mi}}
",
    );
    let configuration = fixture.configuration();
    let settings = configuration
        .table()
        .pod_settings(&"ghcr.io/x/fn:v0.2.0".parse().unwrap());
    assert_eq!(settings.time_to_live, Some(Duration::from_secs(5400)));
    assert_eq!((settings.max_queue, settings.max_pods), (Some(2), None));
    let overrides = settings.overrides.unwrap();
    assert_eq!(
        overrides.as_json(),
        r#"{"container":{"resources":{"limits":{"memory":"256Mi"},"requests":{"cpu":"1"}}}}"#
    );
}

#[tokio::test]
async fn reloads_an_edited_file_and_keeps_the_last_valid_table_after_an_invalid_edit() {
    let fixture = Fixture::new().binaries(&["fn"]).config(GOOD);
    let configuration = fixture.configuration();
    let _reload = configuration.spawn_reload().unwrap();

    let fixture = fixture.config("functions:\n- function: fn\n  images: ['fn:v1', 'fn:v2']\n");
    until(&configuration, |table| {
        table.len() == 1 && table.rows()[0].versions.len() == 2
    })
    .await;

    let fixture = fixture.config("functions:\n- function: fn\n  images: ['fn:v1', 'fn:']\n");
    until(&configuration, |table| !table.problems().is_empty()).await;
    let problem = configuration.table().problems()[0].to_string();
    assert!(
        problem.contains("config.yaml:3: ") && problem.contains("tag is empty"),
        "{problem}"
    );
    assert!(has_binary(&configuration, "fn:v2"));

    // Back to the last valid text: the problem disappears although the text is not new.
    let fixture = fixture.config("functions:\n- function: fn\n  images: ['fn:v1', 'fn:v2']\n");
    until(&configuration, |table| table.problems().is_empty()).await;

    fs::remove_file(fixture.path("config.yaml")).unwrap();
    until(&configuration, Table::is_empty).await;
}

#[tokio::test]
async fn reloads_a_mounted_config_map_when_its_symlink_changes() {
    let fixture = Fixture::new().binaries(&["fn"]);
    let mount = |version: &str, text: &str| {
        fs::create_dir(fixture.path(version)).unwrap();
        fs::write(fixture.path(version).join("config.yaml"), text).unwrap();
        std::os::unix::fs::symlink(version, fixture.path("..data_tmp")).unwrap();
        fs::rename(fixture.path("..data_tmp"), fixture.path("..data")).unwrap();
    };
    mount("..1", GOOD);
    std::os::unix::fs::symlink("..data/config.yaml", fixture.path("config.yaml")).unwrap();
    let configuration = fixture.configuration();
    assert!(has_binary(&configuration, "fn:v1"));
    let _reload = configuration.spawn_reload().unwrap();

    mount("..2", "functions: [{function: fn, images: ['fn:v3']}]");
    until(&configuration, |table| table.rows()[0].versions == ["v3"]).await;
}

#[tokio::test]
async fn removes_the_problem_of_a_missing_binary_when_it_appears() {
    let fixture = Fixture::new().config(GOOD);
    let configuration = fixture.configuration();
    assert_eq!(configuration.table().problems().len(), 1);
    let _reload = configuration.spawn_reload().unwrap();
    let _fixture = fixture.binaries(&["fn"]);
    until(&configuration, |table| table.problems().is_empty()).await;
}

#[test]
fn adds_and_removes_objects() {
    let fixture = Fixture::new().binaries(&["fn"]);
    let configuration = fixture.configuration();
    let mut changes = configuration.watch();
    let declaration = object("o").image("fn").binary("fn", &["v1"]).0;

    configuration.replace_objects([declaration.clone()]);
    assert!(has_binary(&configuration, "fn:v1"));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();

    configuration.replace_objects([declaration]);
    assert!(
        !changes.has_changed().unwrap(),
        "an equal declaration builds no new table"
    );

    configuration.replace_objects([]);
    assert!(!has_binary(&configuration, "fn:v1"));
}
