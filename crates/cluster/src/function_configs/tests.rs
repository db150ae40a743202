use fixture::{DEFAULT_PREFIX, Fixture};
use rstest::rstest;
use runner_config::{SHORTEST_TIME_TO_LIVE, Table};
use runner_core::ImageReference;
use serde_json::{Value, json};
use server::{ApiServer, State, Verb};

use super::*;

mod fixture;
mod server;

fn binary(path: &str) -> Value {
    json!({"image": "fn", "binaryExecutor": {"path": path, "tags": ["v1"]}})
}

fn binary_of(table: &Table) -> Option<String> {
    let image = ImageReference::qualified("fn:v1", DEFAULT_PREFIX).unwrap();
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    table
        .executable(&image, None)
        .map(|found| name(&found.executable.path))
}

async fn until(configuration: &Configuration, condition: impl Fn(&Table) -> bool) {
    let mut changes = configuration.watch();
    let wait = async {
        while !condition(&configuration.table()) {
            changes.changed().await.unwrap();
        }
    };
    if tokio::time::timeout(std::time::Duration::from_secs(300), wait)
        .await
        .is_err()
    {
        panic!("the table never came: {:#?}", configuration.table());
    }
}

async fn reach(watch: &FunctionConfigWatch, wanted: impl Fn(&WatchState) -> bool) {
    let mut state = watch.state();
    let limit = std::time::Duration::from_secs(300);
    tokio::time::timeout(limit, state.wait_for(wanted))
        .await
        .unwrap()
        .unwrap();
}

fn error_of(state: &State, name: &str) -> Option<String> {
    state.objects.get(name)?["status"]["error"]
        .as_str()
        .map(str::to_owned)
}

fn observed(state: &State, name: &str) -> Option<i64> {
    state.objects.get(name)?["status"]["functionRunnerObservedGeneration"].as_i64()
}

#[tokio::test(start_paused = true)]
async fn applies_and_acknowledges_objects_and_their_edits() {
    let fixture = Fixture::new().binaries(&["one", "two"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("o", binary("one"));
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    reach(&watch, |state| *state == WatchState::Synced).await;
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("one"));
    server.until(|state| observed(state, "o") == Some(1)).await;

    server.put("o", binary("two"));
    until(&configuration, |table| {
        binary_of(table).as_deref() == Some("two")
    })
    .await;
    server.until(|state| observed(state, "o") == Some(2)).await;

    server.delete("o");
    until(&configuration, |table| binary_of(table).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn writes_only_the_two_status_fields_of_the_runner() {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    server.put("o", binary("missing"));
    server.touch("o", |object| {
        object["status"] = json!({"apiServerObservedGeneration": 7});
    });
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| !state.patches.is_empty()).await;

    let state = server.state();
    let (verb, name, patch) = &state.patches[0];
    assert_eq!((*verb, name.as_str()), (Verb::PatchStatus, "o"));
    let fields: Vec<&String> = patch["status"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error", "functionRunnerObservedGeneration"]);
    assert_eq!(
        state.objects["o"]["status"]["apiServerObservedGeneration"],
        7
    );
    assert!(
        error_of(&state, "o")
            .unwrap()
            .contains("missing cannot be used")
    );
}

#[tokio::test(start_paused = true)]
async fn reports_invalid_tags_and_applies_the_others() {
    let fixture = Fixture::new().binaries(&["one"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put(
        "o",
        json!({
            "image": "fn",
            "binaryExecutor": {"path": "one", "tags": [">> 1", "~1"]},
            "podExecutor": {"tags": ["*", "", "latest", "main"]},
            "goExecutor": {"tags": ["nightly"]},
        }),
    );
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| error_of(state, "o").is_some()).await;
    assert_eq!(
        error_of(&server.state(), "o").unwrap(),
        "invalid BinaryExecutor tag constraints: tag \">> 1\" is not a valid semver constraint: \
         \">>\" is not an operator; \
         invalid GoExecutor tag constraints: tag \"nightly\" is not a valid semver constraint: \
         improper constraint: nightly; \
         invalid PodExecutor tag constraints: tag \"main\" is not a valid semver constraint: \
         improper constraint: main"
    );
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("one"));
}

#[tokio::test(start_paused = true)]
async fn writes_only_the_error_if_the_crd_has_no_generation_field() {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    server.state().without_generation = true;
    server.put("bad", binary("missing"));
    server.put("good", json!({"image": "other", "podExecutor": {}}));
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| error_of(state, "bad").is_some()).await;
    assert_eq!(observed(&server.state(), "bad"), None);
    assert_eq!(
        server.state().patches.len(),
        1,
        "nothing is written where nothing is wrong"
    );
    drop(watch);
    let listed = list_function_configs(server.client(), "fns").await.unwrap();
    assert!(listed.iter().all(|object| object.observed.is_none()));
}

#[rstest]
#[case("0s", "the value of --pod-ttl", None)]
#[case("5ns", "1s", Some(SHORTEST_TIME_TO_LIVE))]
#[tokio::test(start_paused = true)]
async fn raises_and_reports_a_time_to_live_that_is_too_short(
    #[case] time: &str,
    #[case] instead: &str,
    #[case] used: Option<std::time::Duration>,
) {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    let pods = json!({"tags": ["*"], "timeToLive": time});
    server.put("o", json!({"image": "fn", "podExecutor": pods}));
    server.touch("o", |object| {
        object["metadata"]["annotations"] = json!({"fn.kpt.dev/min-pods": "2"});
    });
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| error_of(state, "o").is_some()).await;
    assert_eq!(
        error_of(&server.state(), "o").unwrap(),
        format!("podExecutor.timeToLive: {time} is too short: {instead} is used")
    );
    let image = ImageReference::qualified("fn:v1", DEFAULT_PREFIX).unwrap();
    let settings = configuration.table().pod_settings(&image);
    assert_eq!(settings.time_to_live, used);
    assert_eq!(settings.min_pods, Some(2));
}

#[tokio::test(start_paused = true)]
async fn reports_a_conflict_to_the_younger_object_until_the_older_is_removed() {
    let fixture = Fixture::new().binaries(&["one", "two"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("older", binary("one"));
    server.put("younger", binary("two"));
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server
        .until(|state| error_of(state, "younger").is_some())
        .await;
    let error = error_of(&server.state(), "younger").unwrap();
    assert!(
        error.contains("already configured by the older FunctionConfig fns/older"),
        "{error}"
    );
    assert_eq!(error_of(&server.state(), "older"), None);
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("one"));

    server.delete("older");
    server
        .until(|state| error_of(state, "younger").is_none())
        .await;
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("two"));
}

#[tokio::test]
async fn removes_the_error_of_a_missing_binary_when_it_appears() {
    let fixture = Fixture::new();
    let configuration = fixture.configuration();
    let _reload = configuration.spawn_reload().unwrap();
    let server = ApiServer::new();
    server.put("o", binary("one"));
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| error_of(state, "o").is_some()).await;
    let _fixture = fixture.binaries(&["one"]);
    server.until(|state| error_of(state, "o").is_none()).await;
}

#[rstest]
#[case::duration(json!({"podExecutor": {"timeToLive": "1 day", "maxParallelExecutions": 3}}), "podExecutor.timeToLive: malformed duration \"1 day\"")]
#[case::count(json!({"podExecutor": {"preferredMaxQueueLength": -1, "maxParallelExecutions": 3}}), "podExecutor.preferredMaxQueueLength: -1 is not a count")]
#[case::quantity(json!({"podExecutor": {"maxParallelExecutions": 3, "templateOverrides": {"container": {"resources": {"limits": {"memory": "1GB"}}}}}}), "memory: \"1GB\" is not")]
#[tokio::test(start_paused = true)]
async fn reports_an_invalid_field_and_applies_the_others(#[case] spec: Value, #[case] says: &str) {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    let mut spec = spec;
    spec["image"] = json!("fn");
    spec["podExecutor"]["tags"] = json!(["*"]);
    server.put("o", spec);
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server
        .until(|state| error_of(state, "o").is_some_and(|error| error.contains(says)))
        .await;
    let image = ImageReference::qualified("fn:v9", DEFAULT_PREFIX).unwrap();
    assert_eq!(configuration.table().pod_settings(&image).max_pods, Some(3));
}

#[tokio::test(start_paused = true)]
async fn applies_other_objects_beside_a_malformed_one() {
    let fixture = Fixture::new().binaries(&["one"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("a-strange-one", json!({"image": ["fn"]}));
    server.put("b-empty-one", Value::Null);
    server.put("c-good-one", binary("one"));
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server
        .until(|state| observed(state, "c-good-one").is_some())
        .await;
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("one"));
    server
        .until(|state| error_of(state, "a-strange-one").is_some())
        .await;
    server
        .until(|state| error_of(state, "b-empty-one").is_some())
        .await;
}

#[tokio::test(start_paused = true)]
async fn drops_an_object_being_deleted_and_removes_its_old_finalizer() {
    let fixture = Fixture::new().binaries(&["one"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("o", binary("one"));
    server.touch("o", |object| {
        object["metadata"]["finalizers"] = json!([OLD_FINALIZER, "example.com/other"]);
    });
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    until(&configuration, |table| binary_of(table).is_some()).await;

    server.delete("o");
    until(&configuration, |table| binary_of(table).is_none()).await;
    let left = json!(["example.com/other"]);
    server
        .until(|state| state.objects["o"]["metadata"]["finalizers"] == left)
        .await;
    server.touch("o", |object| object["metadata"]["finalizers"] = json!([]));
    assert!(server.state().objects.is_empty());
}

#[rstest]
#[case::no_such_objects(404, "install the definitions in deploy/crds")]
#[case::not_allowed(403, "grant get, list, watch and patch on functionconfigs")]
#[tokio::test(start_paused = true)]
async fn uses_the_files_until_objects_can_be_listed(#[case] code: u16, #[case] says: &str) {
    let fixture = Fixture::new()
        .binaries(&["file", "object"])
        .config("functions: [{function: file, images: ['fn:v1']}]");
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("o", binary("object"));
    server.refuse(Verb::List, code);
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    reach(
        &watch,
        |state| matches!(state, WatchState::Unavailable(why) if why.contains(says)),
    )
    .await;
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("file"));

    server.permit(Verb::List);
    reach(&watch, |state| *state == WatchState::Synced).await;
    assert_eq!(binary_of(&configuration.table()).as_deref(), Some("object"));
}

#[tokio::test(start_paused = true)]
async fn applies_objects_without_permission_for_their_status() {
    let fixture = Fixture::new().binaries(&["one", "two"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("o", binary("one"));
    server.refuse(Verb::PatchStatus, 403);
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    until(&configuration, |table| {
        binary_of(table).as_deref() == Some("one")
    })
    .await;
    server.put("o", binary("two"));
    until(&configuration, |table| {
        binary_of(table).as_deref() == Some("two")
    })
    .await;
    assert!(server.state().patches.is_empty());
}

#[rstest]
#[case::closed(ApiServer::drop_watches)]
#[case::too_old(ApiServer::compact)]
#[tokio::test(start_paused = true)]
async fn applies_changes_made_while_the_watch_was_interrupted(#[case] interrupt: fn(&ApiServer)) {
    let fixture = Fixture::new().binaries(&["one", "two"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("gone", json!({"image": "other", "podExecutor": {}}));
    server.put("o", binary("one"));
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| observed(state, "o").is_some()).await;

    for verb in [Verb::List, Verb::Watch, Verb::PatchStatus] {
        server.refuse(verb, 0);
    }
    interrupt(&server);
    server.put("o", binary("two"));
    server.delete("gone");
    for verb in [Verb::List, Verb::Watch, Verb::PatchStatus] {
        server.permit(verb);
    }
    until(&configuration, |table| {
        binary_of(table).as_deref() == Some("two")
    })
    .await;
    until(&configuration, |table| table.len() == 1).await;
    server.until(|state| observed(state, "o") == Some(2)).await;
}

#[tokio::test(start_paused = true)]
async fn writes_a_status_once_the_api_server_is_back() {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    server.put("o", binary("missing"));
    server.refuse(Verb::PatchStatus, 500);
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    reach(&watch, |state| *state == WatchState::Synced).await;
    server.permit(Verb::PatchStatus);
    server.until(|state| error_of(state, "o").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn does_not_write_a_status_that_is_already_correct() {
    let fixture = Fixture::new().binaries(&["one"]);
    let server = ApiServer::new();
    server.put("o", binary("one"));
    let first = fixture.configuration();
    let watch = watch_function_configs(&first, server.client(), "fns");
    server.until(|state| observed(state, "o") == Some(1)).await;
    drop(watch);
    let written = server.state().patches.len();

    let second = fixture.configuration();
    let _watch = watch_function_configs(&second, server.client(), "fns");
    server.put("p", json!({"image": "other", "podExecutor": {}}));
    server.until(|state| observed(state, "p").is_some()).await;
    let state = server.state();
    let about = state.patches[written..]
        .iter()
        .map(|(_, name, _)| name.as_str());
    assert_eq!(about.collect::<Vec<_>>(), ["p"]);
}

#[tokio::test(start_paused = true)]
async fn does_not_overwrite_a_different_status_of_another_replica() {
    let fixture = Fixture::new().binaries(&["one"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("o", binary("one"));
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| observed(state, "o") == Some(1)).await;

    server.touch("o", |object| {
        object["status"]["error"] = json!("no such binary over here");
    });
    server.put("p", json!({"image": "other", "podExecutor": {}}));
    server.until(|state| observed(state, "p").is_some()).await;
    assert!(error_of(&server.state(), "o").is_some());

    server.put("o", binary("one"));
    server.until(|state| observed(state, "o") == Some(2)).await;
    assert_eq!(error_of(&server.state(), "o"), None);
}

#[tokio::test(start_paused = true)]
async fn builds_few_tables_for_many_objects() {
    let configuration = Fixture::new().configuration();
    let server = ApiServer::new();
    for at in 0..1000 {
        server.put(
            &format!("o{at}"),
            json!({"image": format!("fn{at}"), "podExecutor": {}}),
        );
    }
    let tables = configuration.watch();
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    reach(&watch, |state| *state == WatchState::Synced).await;
    assert_eq!(configuration.table().len(), 1000);
    assert!(*tables.borrow() <= 2, "{} tables", *tables.borrow());
    server.until(|state| state.patches.len() == 1000).await;
}

#[tokio::test(start_paused = true)]
async fn lists_objects_with_their_status() {
    let fixture = Fixture::new().binaries(&["one"]);
    let configuration = fixture.configuration();
    let server = ApiServer::new();
    server.put("good", binary("one"));
    server.put("bad", binary("missing"));
    let watch = watch_function_configs(&configuration, server.client(), "fns");
    server.until(|state| state.patches.len() == 2).await;
    drop(watch);
    server.put("good", binary("one"));

    let listed = list_function_configs(server.client(), "fns").await.unwrap();
    let told: Vec<(Option<bool>, bool)> = listed
        .iter()
        .map(|object| (object.observed, object.error.is_some()))
        .collect();
    assert_eq!(told, [(Some(true), true), (Some(false), false)]);

    server.refuse(Verb::List, 404);
    let error = list_function_configs(server.client(), "fns")
        .await
        .unwrap_err();
    assert!(matches!(error, ListError::Unknown));
}

#[tokio::test(start_paused = true)]
async fn completes_the_table_with_the_first_list_or_a_lasting_refusal() {
    let configuration = Fixture::new().binaries(&["one"]).configuration();
    assert!(
        configuration.completes_by(None).await,
        "no objects are followed"
    );

    let server = ApiServer::new();
    server.put("o", binary("one"));
    server.refuse(Verb::List, 0);
    let _watch = watch_function_configs(&configuration, server.client(), "fns");
    assert!(
        !configuration.completes_by(None).await,
        "the API server is away"
    );
    server.permit(Verb::List);
    until(&configuration, |table| binary_of(table).is_some()).await;
    assert!(configuration.completes_by(None).await);

    let without_definitions = Fixture::new().configuration();
    let server = ApiServer::new();
    server.refuse(Verb::List, 404);
    let _watch = watch_function_configs(&without_definitions, server.client(), "fns");
    assert!(without_definitions.completes_by(None).await);
}

#[tokio::test(start_paused = true)]
async fn reports_the_end_of_its_tasks() {
    let server = ApiServer::new();
    let configuration = Fixture::new().configuration();
    let mut watch = watch_function_configs(&configuration, server.client(), "fns");
    reach(&watch, |state| *state == WatchState::Synced).await;
    watch.tasks[0].abort();
    let reason = watch.ended().await;
    assert!(
        reason.contains("FunctionConfig objects has ended"),
        "{reason}"
    );
}
