use std::sync::Mutex;

use runner_pool::{Leave, PodName, Time};
use runner_test_support::{ApiRequests, refusal};
use serde_json::Value;

use super::*;
use crate::testing::client;

/// Returns an API server that gives `answers` in turn, and the recorded requests.
fn server(answers: Vec<(u16, Value)>) -> (Cluster, ApiRequests) {
    let answers = Mutex::new(answers.into_iter());
    let (client, requests) = client(move |_, _| {
        let answer = answers.lock().unwrap().next();
        Some(answer.expect("a request too many"))
    });
    (Cluster::new(client, "fns"), requests)
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
    let (cluster, requests) = server(vec![(201, serde_json::to_value(pod()).unwrap())]);
    let outcome = cluster.create_pod(&pod()).await;
    assert!(matches!(outcome, CreateOutcome::Created { uid, .. } if uid.as_str() == "u1"));
    let requests = requests.all();
    assert_eq!(
        (&*requests[0].0, &*requests[0].1),
        (
            "POST",
            "/api/v1/namespaces/fns/pods?&fieldManager=krm-function-runner"
        )
    );
}

#[tokio::test]
async fn returns_the_existing_pod_if_the_name_is_taken() {
    let (cluster, _) = server(vec![
        refusal(409, "pods \"fn-1\" already exists"),
        (200, serde_json::to_value(pod()).unwrap()),
    ]);
    let CreateOutcome::NameTaken(existing) = cluster.create_pod(&pod()).await else {
        panic!("the pod is there")
    };
    assert_eq!(existing.observed.uid.as_str(), "u1");
}

#[tokio::test]
async fn returns_the_servers_message_about_an_exceeded_quota() {
    let (cluster, _) = server(vec![refusal(403, "exceeded quota: pods=2")]);
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
    let (cluster, requests) = server(vec![(200, serde_json::to_value(pod()).unwrap())]);
    assert_eq!(cluster.delete_pod(&delete()).await, DeleteOutcome::Accepted);
    let requests = requests.all();
    assert_eq!(
        requests[0].2["preconditions"],
        json!({"uid": "u1", "resourceVersion": "5"})
    );
}

#[tokio::test]
async fn reports_a_conflict_if_another_replica_changed_the_pod() {
    let (cluster, _) = server(vec![refusal(409, "the object has been modified")]);
    assert_eq!(cluster.delete_pod(&delete()).await, DeleteOutcome::Conflict);
}

#[tokio::test]
async fn extends_a_pod_by_a_patch_with_its_uid() {
    let (cluster, requests) = server(vec![(200, serde_json::to_value(pod()).unwrap())]);
    let extension = Extension {
        name: PodName::from("fn-1"),
        uid: "u1".into(),
        reclaim_after: Time::from_unix_secs(77),
    };
    cluster.extend(&extension).await.unwrap();
    let requests = requests.all();
    assert_eq!(requests[0].0, "PATCH");
    assert_eq!(requests[0].2["metadata"]["uid"], "u1");
    assert_eq!(
        requests[0].2["metadata"]["annotations"][RECLAIM_AFTER],
        "77"
    );
}
