use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use runner_test_support::ApiRequests;
use serde_json::{Value, json};

use super::*;
use crate::{
    templates::default,
    testing::{client, refuse},
};

const LIMIT: Duration = Duration::from_secs(60);

struct Following {
    observations: mpsc::UnboundedReceiver<Observation>,
    requests: ApiRequests,
    _task: tokio::task::JoinSet<()>,
}

impl Following {
    fn start(
        answer: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
        source: impl FnOnce(Client) -> TemplateSource,
    ) -> Self {
        let (client, requests) = client(answer);
        let (sender, observations) = mpsc::unbounded_channel();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(source(client).follow(sender));
        Self {
            observations,
            requests,
            _task: task,
        }
    }

    async fn next(&mut self) -> Result<Arc<Templates>, TemplateError> {
        let observation = tokio::time::timeout(LIMIT, self.observations.recv()).await;
        match observation.expect("an observation in time") {
            Some(Observation::Templates(templates)) => templates,
            other => panic!("{other:?}"),
        }
    }
}

fn objects(client: Client) -> TemplateSource {
    TemplateSource::Objects(TemplateObjects::new(client, "fns"))
}

fn list(items: &Value) -> Option<(u16, Value)> {
    Some((
        200,
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}),
    ))
}

/// Returns an API server that lists both templates if `stored()` is true and accepts creations.
fn store(
    stored: impl Fn() -> bool + Send + Sync,
) -> impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync {
    move |method, path| {
        let object = if path.contains("/podtemplates") {
            pod()
        } else {
            service()
        };
        match method {
            "POST" => Some((201, object)),
            _ if path.contains("watch=true") => None,
            _ if stored() => list(&json!([object])),
            _ => list(&json!([])),
        }
    }
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "base-pod-template", "resourceVersion": "12"},
        "template": default::pod_template(),
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template", "resourceVersion": "9"},
        "template": {"spec": {"type": "ClusterIP"}},
    })
}

/// Returns the names of the created objects, sorted.
fn created(requests: &ApiRequests) -> Vec<String> {
    let requests = requests.all();
    let created = requests.iter().filter(|(method, _, _)| method == "POST");
    let mut names: Vec<_> = created
        .map(|(_, _, body)| body["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn missing(skip_creation: bool, wait: Duration) -> impl FnOnce(Client) -> TemplateSource {
    move |client| {
        TemplateSource::Objects(TemplateObjects {
            pod_name: "ours".to_owned(),
            missing: MissingTemplates {
                skip_creation,
                wait,
            },
            ..TemplateObjects::new(client, "fns")
        })
    }
}

#[tokio::test]
async fn creates_missing_templates() {
    let mut following = Following::start(store(|| false), objects);
    let templates = following.next().await.unwrap();
    assert_eq!(&*templates.version, "12");
    assert_eq!(
        created(&following.requests),
        ["base-pod-template", "base-service-template"]
    );
}

#[tokio::test(start_paused = true)]
async fn creates_missing_templates_once_the_api_server_answers() {
    let refused = AtomicUsize::new(0);
    let answers = store(|| false);
    let answer = move |method: &str, path: &str| {
        if refused.fetch_add(1, Ordering::Relaxed) < 12 {
            refuse(503, "etcd is away")
        } else {
            answers(method, path)
        }
    };
    let mut following = Following::start(answer, objects);
    assert_eq!(&*following.next().await.unwrap().version, "12");
    assert_eq!(
        created(&following.requests),
        ["base-pod-template", "base-service-template"]
    );
}

#[tokio::test(start_paused = true)]
async fn retries_a_creation_that_the_api_server_could_not_do() {
    let refused = AtomicUsize::new(0);
    let answers = store(|| false);
    let answer = move |method: &str, path: &str| {
        if method == "POST" && refused.fetch_add(1, Ordering::Relaxed) < 6 {
            refuse(503, "etcd is away")
        } else {
            answers(method, path)
        }
    };
    let mut following = Following::start(answer, objects);
    assert_eq!(&*following.next().await.unwrap().version, "12");
}

#[tokio::test(start_paused = true)]
async fn waits_before_it_creates_a_missing_template() {
    let started = tokio::time::Instant::now();
    let wait = Duration::from_secs(20);
    let mut following = Following::start(store(|| false), missing(false, wait));
    following.next().await.unwrap();
    assert!(started.elapsed() >= wait);
    assert_eq!(
        created(&following.requests),
        ["base-service-template", "ours"],
        "the object has the configured name"
    );
}

#[tokio::test(start_paused = true)]
async fn reports_a_missing_template_that_must_not_be_created() {
    let mut following = Following::start(store(|| false), missing(true, Duration::ZERO));
    let error = following.next().await.unwrap_err().to_string();
    assert!(
        error.starts_with("PodTemplate fns/ours cannot be used (it does not exist)"),
        "{error}"
    );
    assert!(created(&following.requests).is_empty());
}

#[tokio::test(start_paused = true)]
async fn uses_templates_that_exist_without_creating_any() {
    let mut following = Following::start(store(|| true), missing(true, Duration::ZERO));
    assert_eq!(&*following.next().await.unwrap().version, "12");
    assert!(created(&following.requests).is_empty());
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_kind_that_is_installed_later() {
    let refused = AtomicUsize::new(0);
    let answers = store(|| true);
    let answer = move |method: &str, path: &str| {
        if refused.fetch_add(1, Ordering::Relaxed) < 12 {
            refuse(404, "the server could not find the requested resource")
        } else {
            answers(method, path)
        }
    };
    let mut following = Following::start(answer, missing(true, Duration::from_secs(55)));
    assert_eq!(&*following.next().await.unwrap().version, "12");
    assert!(created(&following.requests).is_empty());
}

#[tokio::test]
async fn uses_built_in_templates_if_objects_may_not_be_listed() {
    let forbidden = |_: &str, _: &str| refuse(403, "podtemplates is forbidden");
    let mut following = Following::start(forbidden, objects);
    let templates = following.next().await.unwrap();
    assert_eq!(*templates, Templates::built_in());
}

#[tokio::test(start_paused = true)]
async fn reads_a_config_map_at_most_once_a_second() {
    let text = "spec:\n  containers:\n  - name: function\n    image: replaced\n";
    let answer = move |_: &str, _: &str| {
        let map = json!({"metadata": {"resourceVersion": "1"}, "data": {"template": text}});
        Some((200, map))
    };
    let mut following = Following::start(answer, |client| TemplateSource::ConfigMap {
        client,
        namespace: "porch-system".to_owned(),
        name: "fn-template".to_owned(),
        every: Duration::ZERO,
    });
    following.next().await.unwrap();
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(following.requests.all().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn polls_the_config_map_and_reports_its_errors() {
    let good = "spec:\n  containers:\n  - name: function\n    image: replaced\n";
    let bad = "spec:\n  containers:\n  - name: main\n    image: replaced\n";
    let map = |version: &str, template: &str| {
        let metadata = json!({"resourceVersion": version});
        Some((
            200,
            json!({"metadata": metadata, "data": {"template": template}}),
        ))
    };
    let answers = Mutex::new(
        [
            refuse(404, "configmaps \"fn-template\" not found"),
            refuse(503, "try again"),
            map("3", good),
            map("3", good),
            map("4", bad),
            map("5", good),
        ]
        .into_iter(),
    );
    let answer = move |_: &str, _: &str| answers.lock().unwrap().next().flatten();
    let mut following = Following::start(answer, |client| TemplateSource::ConfigMap {
        client,
        namespace: "porch-system".to_owned(),
        name: "fn-template".to_owned(),
        every: Duration::from_secs(5),
    });
    let missing = with_causes(&following.next().await.unwrap_err());
    assert!(
        missing.contains("porch-system/fn-template") && missing.contains("not found"),
        "{missing}"
    );
    assert_eq!(&*following.next().await.unwrap().version, "3");
    let wrong = following.next().await.unwrap_err().to_string();
    assert!(wrong.contains("\"function\""), "{wrong}");
    assert_eq!(&*following.next().await.unwrap().version, "5");
    let requests = following.requests.all();
    assert!(
        requests.iter().all(|(method, path, _)| method == "GET"
            && path == "/api/v1/namespaces/porch-system/configmaps/fn-template"),
        "nothing but get is granted: {requests:?}"
    );
}
