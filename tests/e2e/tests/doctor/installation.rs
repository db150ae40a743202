//! A sound installation, in which each test breaks one thing.

use std::fmt::Debug;

use e2e::{LIMIT, Stage, eventually, install_definitions, program};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{PodTemplate, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use runner_cluster::objects::FunctionConfig;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::process::Command;

const NAME: &str = "function-runner";

/// An installation with the runner and its functions in the stage's own namespace.
pub struct Installation {
    stage: Stage,
}

/// The result of `krm doctor`.
#[derive(Debug)]
pub struct Report {
    pub code: i32,
    pub findings: Vec<Value>,
    pub text: String,
}

/// A failed finding.
#[derive(Debug)]
pub struct Failed {
    pub says: String,
    pub fix: String,
}

// === impl Installation ===

impl Installation {
    /// Installs everything and waits until it is ready.
    ///
    /// The Deployment's pod only sleeps; a runner outside the cluster does the evaluations.
    pub async fn create(stage: &Stage) -> Self {
        install_definitions(stage).await;
        let installation = Self {
            stage: stage.clone(),
        };
        let (namespace, labels) = (stage.namespace(), json!({"app": NAME}));
        installation
            .put::<ServiceAccount>(json!({"metadata": {"name": NAME}}))
            .await;
        let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        let crds = "config.porch.kpt.dev";
        let role = json!({"metadata": {"name": NAME}, "rules": [
            rule("", &["pods"], &["create", "delete", "get", "list", "patch", "watch"]),
            rule("", &["services"], &["create", "delete", "get", "list", "watch"]),
            rule("", &["secrets"], &["create", "get", "update"]),
            rule("", &["podtemplates"], &["create", "get", "list", "watch"]),
            rule(crds, &["functionconfigs"], &["get", "list", "patch", "watch"]),
            rule(crds, &["functionconfigs/status"], &["patch"]),
            rule(crds, &["servicetemplates"], &["create", "get", "list", "watch"]),
        ]});
        installation.put::<Role>(role).await;
        let binding = json!({
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        });
        installation.put::<RoleBinding>(binding).await;
        let policy = json!({"metadata": {"name": "functions"}, "spec": {
            "podSelector": {"matchExpressions": [{"key": "fn.kpt.dev/image", "operator": "Exists"}]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": 9446}], "from": [{"podSelector": {"matchLabels": labels}}]}],
            "egress": [{"ports": [{"port": 9447}], "to": [{"podSelector": {"matchLabels": labels}}]}],
        }});
        installation.put::<NetworkPolicy>(policy).await;
        let service = json!({"metadata": {"name": NAME}, "spec": {
            "selector": labels, "ports": [{"port": 9445}],
        }});
        installation.put::<Service>(service).await;
        installation
            .put::<Deployment>(deployment(stage, &labels))
            .await;
        installation.ready().await;
        installation
    }

    /// Creates another object.
    pub async fn put<K>(&self, object: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        let made = self
            .stage
            .api::<K>()
            .create(&PostParams::default(), &object)
            .await;
        made.expect("the cluster takes the object");
    }

    /// Runs `krm doctor` with additional arguments.
    pub async fn doctor(&self, arguments: &[&str]) -> Report {
        let namespace = self.stage.namespace();
        let mut all = vec!["--runner-namespace", namespace];
        if !arguments.contains(&"--namespace") {
            all.extend(["--namespace", namespace]);
        }
        all.extend(arguments);
        Report::of(&self.stage, &all).await
    }

    /// Sets or removes the Deployment's variable for the wrapper image, and waits for the rollout.
    pub async fn set_wrapper(&self, image: Option<&str>) {
        let path = "/spec/template/spec/containers/0/env";
        let env = match image {
            Some(image) => json!([{"name": "WRAPPER_SERVER_IMAGE", "value": image}]),
            None => json!([]),
        };
        let change = json!({"op": "replace", "path": path, "value": env});
        patched(&self.stage.api::<Deployment>(), NAME, &[change]).await;
        self.ready().await;
    }

    pub async fn enable_private_registries(&self) {
        let path = "/spec/template/spec/containers/0/args/-";
        let flag = json!({"op": "add", "path": path, "value": "--enable-private-registries"});
        patched(&self.stage.api::<Deployment>(), NAME, &[flag]).await;
        self.ready().await;
    }

    /// Waits until a runner has written an error to the object's status.
    pub async fn acted_on(&self, name: &str) {
        let objects = self.stage.api::<FunctionConfig>();
        eventually("an error in the object's status", async || {
            let object = objects.get(name).await.expect("the object is there");
            object.status.is_some_and(|status| status.error.is_some())
        })
        .await;
        // The runner stores the template at its start.
        let templates = self.stage.api::<PodTemplate>();
        eventually("a stored template", async || {
            let found = templates.get_opt("base-pod-template").await;
            found.is_ok_and(|found| found.is_some())
        })
        .await;
    }

    async fn ready(&self) {
        let deployments = self.stage.api::<Deployment>();
        eventually("a ready Deployment", async || {
            let now = deployments
                .get(NAME)
                .await
                .expect("the Deployment is there");
            let status = now.status.unwrap_or_default();
            status.observed_generation == now.metadata.generation
                && status.ready_replicas.unwrap_or_default() >= 1
                && status.updated_replicas.unwrap_or_default() >= 1
        })
        .await;
    }
}

// === impl Report ===

impl Report {
    /// Runs `krm doctor` to its end.
    pub async fn of(stage: &Stage, arguments: &[&str]) -> Self {
        let run = Command::new(program("krm"))
            .args(["doctor", "--output", "json"])
            .args(arguments)
            .env("KUBECONFIG", stage.bed().kubeconfig())
            .env_remove("KUBERNETES_SERVICE_HOST")
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LIMIT, run).await;
        let output = output.expect("an end in time").expect("krm runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let document: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{:?}", output.stderr));
        let findings = document["findings"].as_array().expect("findings").clone();
        Self {
            code: output.status.code().expect("it ends by itself"),
            findings,
            text,
        }
    }

    /// Checks that every check succeeded, except that of private registries, which are off.
    pub fn is_clean(&self) {
        assert_eq!(self.code, 0, "{self:#?}");
        for finding in &self.findings {
            let is_off = finding["check"] == "registry-credentials";
            let expected = if is_off { "skipped" } else { "ok" };
            assert_eq!(finding["state"], expected, "{self:#?}");
        }
        assert!(
            self.says("evaluation").contains("answered after"),
            "{self:#?}"
        );
    }

    /// Returns the first finding of a check.
    pub fn says(&self, check: &str) -> &str {
        let finding = self.findings.iter().find(|it| it["check"] == check);
        finding
            .and_then(|it| it["finding"].as_str())
            .unwrap_or_default()
    }

    /// Returns the failed finding of a check, which must be the only one of that check.
    pub fn failed(&self, check: &str) -> Failed {
        assert_eq!(self.code, 1, "{self:#?}");
        let is = |it: &&Value| it["check"] == check && it["state"] == "failed";
        let failed: Vec<&Value> = self.findings.iter().filter(is).collect();
        let [failed] = failed[..] else {
            panic!("{check} was to fail: {self:#?}");
        };
        let text = |key: &str| failed[key].as_str().expect("a text").to_owned();
        Failed {
            says: text("finding"),
            fix: text("fix"),
        }
    }

    /// Returns the failed finding of a check, which must be the only one of the report.
    pub fn only_failure(&self, check: &str) -> Failed {
        let failures = self.findings.iter().filter(|it| it["state"] == "failed");
        assert_eq!(failures.count(), 1, "{self:#?}");
        self.failed(check)
    }
}

/// Applies JSON patches to an object.
pub async fn patched<K>(api: &Api<K>, name: &str, changes: &[Value])
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let patch = serde_json::from_value(json!(changes)).expect("a patch");
    let done = api
        .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await;
    done.expect("the object can be changed");
}

fn deployment(stage: &Stage, labels: &Value) -> Value {
    json!({"metadata": {"name": NAME}, "spec": {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": NAME,
                "image": stage.image("bad/sleep"),
                "args": [format!("--pod-namespace={}", stage.namespace())],
                "command": ["/bin/sh", "-c", "exec sleep 86400", "runner"],
                "env": [{"name": "WRAPPER_SERVER_IMAGE", "value": stage.wrapper_image()}],
            }],
        }},
    }})
}
