//! A function pod and its service, created without a runner.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    runtime::{conditions::is_pod_running, wait::await_condition},
};
use runner_core::defaults::WRAPPER_PORT;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};

use crate::{
    Stage,
    go_runner::GoOccasion,
    {LIMIT, eventually},
};

/// Time limit for one attempt to connect to a service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The way in which the wrapper gets into the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// An init container copies the wrapper, as in the default template.
    InitContainer,
    /// The wrapper's image is mounted as a volume.
    ImageVolume,
}

/// A function pod and its service.
pub struct FunctionPod {
    pods: Api<Pod>,
    name: String,
    address: String,
}

// === impl FunctionPod ===

impl FunctionPod {
    /// Creates pod and service without waiting for readiness.
    pub async fn create(
        stage: &Stage,
        name: &str,
        image: &str,
        entrypoint: &[&str],
        injection: Injection,
    ) -> Self {
        Self::create_with(stage, name, pod(stage, name, image, entrypoint, injection)).await
    }

    /// Creates pod and service with a pull secret.
    pub async fn create_private(
        stage: &Stage,
        name: &str,
        image: &str,
        entrypoint: &[&str],
        secret: &str,
    ) -> Self {
        let mut pod = pod(stage, name, image, entrypoint, Injection::InitContainer);
        pod["spec"]["imagePullSecrets"] = json!([{"name": secret}]);
        Self::create_with(stage, name, pod).await
    }

    /// Creates a pod as the Go runner does. For a call the API server adds a suffix to the slot's
    /// name; for warm-up the pod has the slot's name.
    pub async fn create_as_go_runner(
        stage: &Stage,
        slot: &str,
        image: &str,
        entrypoint: &[&str],
        annotations: &[(&str, &str)],
        occasion: GoOccasion,
    ) -> Self {
        let mut pod = annotated(stage, slot, image, entrypoint, annotations);
        if occasion == GoOccasion::Call {
            let metadata = pod["metadata"].as_object_mut().expect("metadata");
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), json!(format!("{slot}-")));
        }
        Self::create_with(stage, slot, pod).await
    }

    /// Creates the pod, and the slot's service if there is none.
    async fn create_with(stage: &Stage, slot: &str, pod: Value) -> Self {
        let pods = stage.api::<Pod>();
        let pod = serde_json::from_value(pod).expect("a pod");
        let made = pods.create(&PostParams::default(), &pod).await;
        let name = made.expect("the API server accepts the pod").name_any();
        let services = stage.api::<Service>();
        let service = serde_json::from_value(json!({
            "metadata": {"name": slot},
            "spec": {
                "selector": {"fn.kpt.dev/image": slot},
                "ports": [{"port": WRAPPER_PORT, "targetPort": WRAPPER_PORT, "protocol": "TCP"}],
            },
        }))
        .expect("a service");
        let known = services.get_opt(slot).await;
        let service = match known.expect("services can be read") {
            Some(known) => known,
            None => {
                let made = services.create(&PostParams::default(), &service).await;
                made.expect("the API server accepts the service")
            }
        };
        let cluster_ip = service
            .spec
            .and_then(|spec| spec.cluster_ip)
            .expect("a ClusterIP");
        Self {
            pods,
            name,
            address: format!("{cluster_ip}:{WRAPPER_PORT}"),
        }
    }

    /// Returns host and port of the service.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until the kubelet reports the pod as ready and its service accepts connections.
    ///
    /// kube-proxy receives the endpoint later and refuses connections until then.
    pub async fn ready(&self) -> Pod {
        let pod = self.reported_ready().await;
        eventually("a service with an endpoint", async || {
            // Nothing answers a packet that was sent to the address of a deleted pod.
            let connect = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.address));
            matches!(connect.await, Ok(Ok(_)))
        })
        .await;
        pod
    }

    /// Waits until the kubelet reports the pod as ready, whatever the state of its service.
    pub async fn reported_ready(&self) -> Pod {
        let ready = await_condition(self.pods.clone(), &self.name, |pod: Option<&Pod>| {
            pod.is_some_and(|pod| condition(pod, "Ready").as_deref() == Some("True"))
        });
        self.within_limit("ready", ready).await
    }

    /// Waits until the pod's containers run.
    pub async fn running(&self) -> Pod {
        let running = await_condition(self.pods.clone(), &self.name, is_pod_running());
        self.within_limit("running", running).await
    }

    /// Waits until the scheduler has assigned the pod to a node.
    pub async fn scheduled(&self) -> Pod {
        let scheduled = await_condition(self.pods.clone(), &self.name, |pod: Option<&Pod>| {
            pod.is_some_and(|pod| condition(pod, "PodScheduled").as_deref() == Some("True"))
        });
        self.within_limit("scheduled", scheduled).await
    }

    /// Waits until the function's container is waiting for this reason, such as `ErrImagePull`.
    pub async fn waiting_with_reason(&self, reason: &str) -> Pod {
        let waits = await_condition(self.pods.clone(), &self.name, |pod: Option<&Pod>| {
            pod.and_then(waiting_reason)
                .is_some_and(|waits| waits == reason)
        });
        self.within_limit(reason, waits).await
    }

    /// Returns the name of the pod, with the suffix that the API server added.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current pod from the API server.
    pub async fn current(&self) -> Pod {
        self.pods.get(&self.name).await.expect("the pod exists")
    }

    /// Waits until the pod runs, and returns the id of the function's container.
    pub async fn container(&self) -> String {
        let pod = self.running().await;
        let status = pod
            .status
            .and_then(|status| status.container_statuses)
            .unwrap_or_default();
        let container = status
            .into_iter()
            .find_map(|container| container.container_id);
        container.expect("a running container has an id")
    }

    async fn within_limit(
        &self,
        what: &str,
        wait: impl Future<Output = Result<Option<Pod>, kube::runtime::wait::Error>>,
    ) -> Pod {
        match timeout(LIMIT, wait).await {
            Ok(Ok(Some(pod))) => pod,
            Ok(outcome) => panic!("pod {} did not become {what}: {outcome:?}", self.name),
            Err(_) => {
                let pod = self.current().await;
                panic!(
                    "pod {} did not become {what}: {:?}",
                    pod.name_any(),
                    pod.status
                )
            }
        }
    }
}

fn annotated(
    stage: &Stage,
    slot: &str,
    image: &str,
    entrypoint: &[&str],
    annotations: &[(&str, &str)],
) -> Value {
    let mut pod = pod(stage, slot, image, entrypoint, Injection::InitContainer);
    // Kubernetes' default, which the templates of installations keep: a deleted pod may exist this
    // long beside the pod that replaces it.
    pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
    for (key, value) in annotations {
        pod["metadata"]["annotations"][*key] = json!(value);
    }
    pod
}

fn condition(pod: &Pod, kind: &str) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == kind)?;
    Some(found.status.clone())
}

fn waiting_reason(pod: &Pod) -> Option<&str> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers
        .first()?
        .state
        .as_ref()?
        .waiting
        .as_ref()?
        .reason
        .as_deref()
}

/// Returns the default template, filled in as the runner does.
fn pod(stage: &Stage, name: &str, image: &str, entrypoint: &[&str], injection: Injection) -> Value {
    const TOOLS: &str = "/wrapper-server-tools";
    let (program, volume, init) = match injection {
        Injection::InitContainer => (
            TOOLS.to_owned(),
            json!({"name": "wrapper-server-tools", "emptyDir": {}}),
            json!([{
                "name": "copy-wrapper-server",
                "image": stage.wrapper_image(),
                "command": ["cp", "-a", "/home/nonroot/wrapper-server/.", TOOLS],
                "volumeMounts": [{"name": "wrapper-server-tools", "mountPath": TOOLS}],
            }]),
        ),
        Injection::ImageVolume => (
            format!("{TOOLS}/home/nonroot/wrapper-server"),
            json!({"name": "wrapper-server-tools", "image": {"reference": stage.wrapper_image()}}),
            json!([]),
        ),
    };
    let mut arguments = vec!["--port", "9446", "--max-request-body-size", "6291456", "--"];
    arguments.extend(entrypoint);
    json!({
        "metadata": {"name": name, "labels": {"fn.kpt.dev/image": name}},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 1,
            "initContainers": init,
            "containers": [{
                "name": "function",
                "image": image,
                // The node may have another image of that tag, or one that it pulled with a
                // password.
                "imagePullPolicy": "Always",
                "command": [format!("{program}/wrapper-server")],
                "args": arguments,
                "ports": [{"containerPort": WRAPPER_PORT}],
                "readinessProbe": {"exec": {"command": [
                    format!("{program}/grpc-health-probe"), "-addr", "localhost:9446",
                ]}},
                "volumeMounts": [{"name": "wrapper-server-tools", "mountPath": TOOLS}],
            }],
            "volumes": [volume],
        },
    })
}
