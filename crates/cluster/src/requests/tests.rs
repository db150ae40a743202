use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use runner_pool::{Leave, PodName, Time};
use serde_json::Value;

use super::*;

/// The recorded requests: method, path, body.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// Returns a client of an API server that gives `answers` in turn, and the recorded requests.
fn server(answers: Vec<(u16, Value)>) -> (Cluster, Asked) {
    let asked = Asked::default();
    let noted = asked.clone();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (noted, answers) = (noted.clone(), answers.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let asked = (head.method.to_string(), head.uri.path().to_owned(), body);
            noted.lock().unwrap().push(asked);
            let (code, answer) = answers.lock().unwrap().next().expect("a request too many");
            let answer = Full::<Bytes>::from(answer.to_string());
            Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    let client = Client::new(service, "fns");
    (Cluster::new(client, "fns"), asked)
}

fn status(code: u16, message: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "code": code, "reason": "Any", "message": message});
    (code, status)
}

fn pod() -> Pod {
    let pod = json!({
        "metadata": {"name": "fn-1", "uid": "u1", "resourceVersion": "5"},
        "spec": {"containers": [{"name": "function", "image": "ghcr.io/x/fn:v1"}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn delete() -> Delete {
    Delete {
        name: PodName::from("fn-1"),
        uid: "u1".into(),
        resource_version: "5".into(),
        why: Leave::Idle,
    }
}

#[tokio::test]
async fn returns_the_uid_of_a_created_pod() {
    let (cluster, asked) = server(vec![(201, serde_json::to_value(pod()).unwrap())]);
    let outcome = cluster.create_pod(&pod()).await;
    assert!(matches!(outcome, CreateOutcome::Created { uid, .. } if uid.as_str() == "u1"));
    let asked = asked.lock().unwrap();
    assert_eq!(
        (&*asked[0].0, &*asked[0].1),
        ("POST", "/api/v1/namespaces/fns/pods")
    );
}

#[tokio::test]
async fn returns_the_existing_pod_if_the_name_is_taken() {
    let (cluster, _) = server(vec![
        status(409, "pods \"fn-1\" already exists"),
        (200, serde_json::to_value(pod()).unwrap()),
    ]);
    let CreateOutcome::NameTaken(seen) = cluster.create_pod(&pod()).await else {
        panic!("the pod is there")
    };
    assert_eq!(seen.observed.uid.as_str(), "u1");
}

#[tokio::test]
async fn returns_the_servers_message_about_an_exceeded_quota() {
    let (cluster, _) = server(vec![status(403, "exceeded quota: pods=2")]);
    let CreateOutcome::Failed(error) = cluster.create_pod(&pod()).await else {
        panic!("it was refused")
    };
    assert_eq!(
        error,
        ApiError::Refused("exceeded quota: pods=2".to_owned())
    );
}

#[tokio::test]
async fn deletes_with_the_observed_uid_and_resource_version() {
    let (cluster, asked) = server(vec![(200, serde_json::to_value(pod()).unwrap())]);
    assert_eq!(cluster.delete_pod(&delete()).await, DeleteOutcome::Accepted);
    let asked = asked.lock().unwrap();
    assert_eq!(
        asked[0].2["preconditions"],
        json!({"uid": "u1", "resourceVersion": "5"})
    );
}

#[tokio::test]
async fn reports_a_conflict_if_another_replica_changed_the_pod() {
    let (cluster, _) = server(vec![status(409, "the object has been modified")]);
    assert_eq!(cluster.delete_pod(&delete()).await, DeleteOutcome::Conflict);
}

#[tokio::test]
async fn extends_a_pod_by_a_patch_with_its_uid() {
    let (cluster, asked) = server(vec![(200, serde_json::to_value(pod()).unwrap())]);
    let extension = Extension {
        name: PodName::from("fn-1"),
        uid: "u1".into(),
        reclaim_after: Time::from_unix_secs(77),
    };
    cluster.extend(&extension).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].0, "PATCH");
    assert_eq!(asked[0].2["metadata"]["uid"], "u1");
    assert_eq!(asked[0].2["metadata"]["annotations"][RECLAIM_AFTER], "77");
}
