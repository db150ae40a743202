use std::time::Duration;

use runner_test_support::ApiRequests;
use serde_json::{Value, json};

use super::*;
use crate::{
    TemplateObjects,
    testing::{client, refuse},
};

const LIMIT: Duration = Duration::from_secs(10);

fn pod(name: &str, uid: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": uid, "resourceVersion": "5"},
        "spec": {"containers": [{"name": "function", "image": "ghcr.io/x/fn:v1"}]},
    })
}

fn service(name: &str, cluster_ip: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": "s1", "resourceVersion": "6"},
        "spec": {"clusterIP": cluster_ip, "selector": {IMAGE_LABEL: name}},
    })
}

fn list(items: &[Value]) -> Option<(u16, Value)> {
    Some((
        200,
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items}),
    ))
}

/// Watches a namespace with two pods and three services, one of each unrelated to functions.
fn following() -> (
    mpsc::UnboundedReceiver<Observation>,
    ApiRequests,
    JoinSet<()>,
) {
    let (client, requests) = client(|_, path| {
        if path.contains("watch=true") {
            None
        } else if path.contains("/pods?") {
            let mut stranger = pod("other", "u2");
            stranger["spec"]["containers"][0]["name"] = json!("main");
            list(&[pod("fn-1", "u1"), stranger])
        } else if path.contains("/services?") {
            let mut stranger = service("other", "198.19.0.3");
            stranger["spec"]["selector"] = json!({"app": "other"});
            list(&[
                service("fn-1", "198.19.0.1"),
                stranger,
                service("fn-2", "None"),
            ])
        } else {
            refuse(403, "forbidden")
        }
    });
    let (sender, observations) = mpsc::unbounded_channel();
    let templates = TemplateSource::Objects(TemplateObjects::new(client.clone(), "fns"));
    let tasks = watch(&client, "fns", templates, sender);
    (observations, requests, tasks)
}

async fn until(
    observations: &mut mpsc::UnboundedReceiver<Observation>,
    last: impl Fn(&Observation) -> bool,
) -> Vec<Observation> {
    let mut all = Vec::new();
    while !all.last().is_some_and(&last) {
        let next = tokio::time::timeout(LIMIT, observations.recv()).await;
        all.push(next.expect("in time").expect("the watches go on"));
    }
    all
}

#[tokio::test]
async fn reports_each_pod_before_the_list_of_all_pods() {
    let (mut observations, _, _tasks) = following();
    let all = until(&mut observations, |observation| {
        matches!(observation, Observation::Pods(_))
    })
    .await;
    let shown: Vec<_> = all
        .iter()
        .filter_map(|observation| match observation {
            Observation::Pod(sighting) => Some(sighting.observed.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["fn-1"], "a pod without a function is nobody's");
    let Some(Observation::Pods(present)) = all.last() else {
        panic!()
    };
    assert_eq!(present.len(), 2);
}

#[tokio::test]
async fn reports_no_address_for_a_headless_service() {
    let (mut observations, _, _tasks) = following();
    let all = until(&mut observations, |observation| {
        matches!(observation, Observation::Services(_))
    })
    .await;
    let addresses: Vec<_> = all
        .iter()
        .filter_map(|observation| match observation {
            Observation::Service(service) => Some(service.cluster_ip),
            _ => None,
        })
        .collect();
    assert_eq!(addresses, [Some([198, 19, 0, 1].into()), None]);
    let Some(Observation::Services(present)) = all.last() else {
        panic!()
    };
    assert_eq!(present.len(), 2, "what leads to no function is nobody's");
}

#[tokio::test]
async fn watches_only_pods_with_the_image_label() {
    let (mut observations, requests, _tasks) = following();
    until(&mut observations, |observation| {
        matches!(observation, Observation::Services(_))
    })
    .await;
    let labelled = requests.all();
    let labelled: Vec<_> = labelled
        .iter()
        .filter(|(_, path, _)| path.contains("/pods?"))
        .collect();
    assert!(!labelled.is_empty());
    for (_, path, _) in labelled {
        assert!(path.contains("labelSelector=fn.kpt.dev%2Fimage"), "{path}");
    }
}
