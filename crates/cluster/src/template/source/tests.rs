use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::testing::{Record, client, refusal};

const LIMIT: Duration = Duration::from_secs(60);

struct Following {
    seen: mpsc::UnboundedReceiver<Seen>,
    asked: Record,
    _task: tokio::task::JoinSet<()>,
}

impl Following {
    fn start(
        answer: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
        source: impl FnOnce(Client) -> TemplateSource,
    ) -> Self {
        let (client, asked) = client(answer);
        let (sender, seen) = mpsc::unbounded_channel();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(source(client).follow(sender));
        Self {
            seen,
            asked,
            _task: task,
        }
    }

    async fn next(&mut self) -> Result<Arc<Templates>, BadTemplate> {
        let seen = tokio::time::timeout(LIMIT, self.seen.recv()).await;
        match seen.expect("something is seen in time") {
            Some(Seen::Templates(templates)) => templates,
            other => panic!("{other:?}"),
        }
    }
}

fn objects(client: Client) -> TemplateSource {
    TemplateSource::Objects {
        client,
        namespace: "fns".to_owned(),
    }
}

fn list(items: &Value) -> Option<(u16, Value)> {
    Some((
        200,
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}),
    ))
}

/// A store without templates, that takes those it is given and shows them.
fn empty() -> impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync {
    let version = json!({"metadata": {"name": "base-pod-template", "resourceVersion": "12"}});
    move |method, path| {
        let pods = path.contains("/podtemplates");
        match method {
            "POST" => Some((201, if pods { version.clone() } else { service() })),
            _ if path.contains("watch=true") => None,
            _ if path.contains("metadata.name") && pods => list(&json!([{
                "metadata": {"name": "base-pod-template", "resourceVersion": "12"},
                "template": default::pod_template(),
            }])),
            _ if path.contains("metadata.name") => list(&json!([service()])),
            _ => refusal(404, "not found"),
        }
    }
}

fn service() -> Value {
    json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "ServiceTemplate",
        "metadata": {"name": "base-service-template", "resourceVersion": "9"},
        "template": {"spec": {"type": "ClusterIP"}},
    })
}

#[tokio::test]
async fn what_is_built_in_is_stored_where_there_is_nothing() {
    let mut following = Following::start(empty(), objects);
    let templates = following.next().await.unwrap();
    assert_eq!(&*templates.version, "12");
    let asked = following.asked.all();
    let stored = asked.iter().filter(|(method, _, _)| method == "POST");
    let mut stored: Vec<_> = stored
        .map(|(_, _, body)| body["metadata"]["name"].clone())
        .collect();
    stored.sort_by_key(ToString::to_string);
    assert_eq!(stored, ["base-pod-template", "base-service-template"]);
}

#[tokio::test]
async fn where_nothing_may_be_seen_what_is_built_in_is_used() {
    let forbidden = |_: &str, _: &str| refusal(403, "podtemplates is forbidden");
    let mut following = Following::start(forbidden, objects);
    let templates = following.next().await.unwrap();
    assert_eq!(*templates, Templates::built_in());
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_read_again_and_what_is_wrong_with_it_is_told() {
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
            refusal(404, "configmaps \"fn-template\" not found"),
            refusal(503, "try again"),
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
    let missing = following.next().await.unwrap_err().to_string();
    assert!(
        missing.contains("porch-system/fn-template") && missing.contains("not found"),
        "{missing}"
    );
    assert_eq!(&*following.next().await.unwrap().version, "3");
    let wrong = following.next().await.unwrap_err().to_string();
    assert!(wrong.contains("\"function\""), "{wrong}");
    assert_eq!(&*following.next().await.unwrap().version, "5");
    let asked = following.asked.all();
    assert!(
        asked.iter().all(|(method, path, _)| method == "GET"
            && path == "/api/v1/namespaces/porch-system/configmaps/fn-template"),
        "nothing but get is granted: {asked:?}"
    );
}
