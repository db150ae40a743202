use std::sync::Mutex;

use runner_test_support::ApiRequests;
use serde_json::{Value, json};

use super::*;
use crate::testing::{client, refuse};

const LOGINS: &str = r#"{"auths":{}}"#;

/// A [`PullSecret`] with its file, and the requests to its API server.
struct Fixture {
    task: PullSecret,
    requests: ApiRequests,
    directory: tempfile::TempDir,
}

fn fixture(stored: Option<Value>, accepts_writes: bool) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let stored = Mutex::new(stored);
    let (client, requests) = client(move |method, _| match method {
        "GET" => match stored.lock().unwrap().clone() {
            Some(secret) => Some((200, secret)),
            None => refuse(404, "secrets \"auth\" not found"),
        },
        "DELETE" => {
            *stored.lock().unwrap() = None;
            Some((
                200,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
            ))
        }
        _ if accepts_writes => Some((200, secret(KIND, "whatever was sent"))),
        _ => refuse(409, "already exists"),
    });
    let file = directory.path().join("config.json");
    fs::write(&file, LOGINS).unwrap();
    Fixture {
        task: PullSecret::new(client, "fns", "auth", file),
        requests,
        directory,
    }
}

fn secret(kind: &str, content: &str) -> Value {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some("auth".to_owned()),
            uid: Some("u1".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some(kind.to_owned()),
        data: Some(BTreeMap::from([(
            KEY.to_owned(),
            ByteString(content.as_bytes().to_owned()),
        )])),
        ..Secret::default()
    };
    serde_json::to_value(secret).unwrap()
}

#[tokio::test]
async fn creates_a_missing_secret_with_the_files_content() {
    let mut fixture = fixture(None, true);
    fixture.task.synchronise().await;
    let requests = fixture.requests.all();
    assert_eq!(fixture.requests.methods(), ["GET", "POST"]);
    assert_eq!(requests[1].2["type"], KIND);
    assert_eq!(requests[1].2["data"], secret(KIND, LOGINS)["data"]);
}

#[tokio::test]
async fn writes_nothing_if_the_secret_equals_the_file() {
    let mut fixture = fixture(Some(secret(KIND, LOGINS)), true);
    fixture.task.synchronise().await;
    fixture.task.synchronise().await;
    assert_eq!(fixture.requests.methods(), ["GET"]);
}

#[tokio::test]
async fn replaces_the_observed_secret_when_the_file_changes() {
    let mut fixture = fixture(Some(secret(KIND, LOGINS)), true);
    fixture.task.synchronise().await;
    let other = r#"{"auths":{"example.com":{}}}"#;
    fs::write(fixture.directory.path().join("config.json"), other).unwrap();
    fixture.task.synchronise().await;
    assert_eq!(fixture.requests.methods(), ["GET", "GET", "PUT"]);
    let put = &fixture.requests.all()[2].2;
    assert_eq!(put["data"], secret(KIND, other)["data"]);
    assert_eq!(put["metadata"]["resourceVersion"], "7");
}

#[tokio::test]
async fn recreates_a_secret_of_another_type() {
    let mut fixture = fixture(Some(secret("Opaque", LOGINS)), true);
    fixture.task.synchronise().await;
    assert_eq!(fixture.requests.methods(), ["GET", "DELETE", "POST"]);
    assert_eq!(fixture.requests.all()[1].2["preconditions"]["uid"], "u1");
}

#[tokio::test]
async fn compares_again_after_another_replica_wrote_first() {
    let mut fixture = fixture(None, false);
    fixture.task.synchronise().await;
    fixture.task.synchronise().await;
    assert_eq!(fixture.requests.methods(), ["GET", "POST", "GET", "POST"]);
    assert_eq!(fixture.task.logged_error, None);
}

#[tokio::test]
async fn writes_nothing_if_the_file_is_missing() {
    let mut fixture = fixture(None, true);
    fs::remove_file(fixture.directory.path().join("config.json")).unwrap();
    fixture.task.synchronise().await;
    assert!(fixture.requests.all().is_empty());
    assert!(
        fixture
            .task
            .logged_error
            .is_some_and(|why| why.contains("config.json"))
    );
}
