//! Converts a pod of the API server into the pool's observation.

use std::{net::IpAddr, sync::Arc};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use runner_core::{Digest, ImageReference};
use runner_pool::{Observed, PodFailure, PodName, PodPhase, TemplateVersion, Time, Uid};

use crate::{
    IMAGE_LABEL, Injection, RECLAIM_AFTER, TEMPLATE_VERSION,
    names::{FUNCTION_CONTAINER, IMAGE_DIGEST},
    pods::render::{image_of, message_limit_of, wrapper_image_of},
};

/// Waiting reasons of a container that count as a failed start: more waiting does not help.
const START_FAILURES: [&str; 10] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PostStartHookError",
    "CrashLoopBackOff",
];

/// The observed state of a pod: the pool's part, and further details.
#[derive(Clone, Debug)]
pub struct PodObservation {
    /// The observation that is passed to the pool.
    pub observed: Observed,
    /// IP address of the pod, once assigned.
    pub address: Option<IpAddr>,
    /// The reason why the pod cannot be scheduled.
    ///
    /// Not a failure by itself: an autoscaler may be adding a node.
    pub unschedulable: Option<PodFailure>,
    /// Whether the pod is assigned to a node.
    pub scheduled: bool,
    /// The injection that the pod was made with.
    pub injection: Injection,
}

/// Reads the state of a pod; returns `None` if the pod has no valid function image.
#[must_use]
pub fn observe(pod: &Pod) -> Option<PodObservation> {
    let meta = &pod.metadata;
    let annotation = |name| meta.annotations.as_ref().and_then(|all| all.get(name));
    let status = pod.status.as_ref();
    let name = meta.name.as_deref()?;
    let label = meta.labels.as_ref().and_then(|all| all.get(IMAGE_LABEL));
    let observed = Observed {
        name: PodName::from(name),
        slot: PodName::from(label.map_or(name, String::as_str)),
        uid: Uid::from(meta.uid.as_deref()?),
        resource_version: meta.resource_version.as_deref()?.into(),
        image: Arc::new(pinned(image_of(pod)?, annotation(IMAGE_DIGEST), status)),
        template: TemplateVersion::of_pod(
            annotation(TEMPLATE_VERSION).map_or("", String::as_str),
            message_limit_of(pod)?,
            wrapper_image_of(pod).unwrap_or_default(),
        ),
        phase: match (&meta.deletion_timestamp, status) {
            (Some(_), _) => PodPhase::Deleting,
            (None, Some(status)) => phase(status),
            (None, None) => PodPhase::Starting(None),
        },
        reclaim_after: annotation(RECLAIM_AFTER)
            .and_then(|text| text.trim().parse().ok())
            .map(Time::from_unix_secs),
    };
    let scheduled = status.and_then(|status| condition(status, "PodScheduled"));
    Some(PodObservation {
        observed,
        address: status
            .and_then(|status| status.pod_ip.as_deref())
            .and_then(|address| address.parse().ok()),
        unschedulable: scheduled.and_then(unschedulable),
        scheduled: scheduled.is_some_and(|condition| condition.status == "True"),
        injection: Injection::of(pod),
    })
}

/// Returns the image with the digest that the pod runs.
///
/// Pods that name their image by tag have the digest in an annotation. Pods of earlier runners do
/// not; for them the kubelet reports the digest once it has pulled the image.
fn pinned(
    image: ImageReference,
    annotated: Option<&String>,
    status: Option<&PodStatus>,
) -> ImageReference {
    if image.digest().is_some() {
        return image;
    }
    if let Some(digest) = annotated.and_then(|text| Digest::parse(text).ok()) {
        return image.at_digest(digest);
    }
    let mut containers = status
        .iter()
        .flat_map(|status| &status.container_statuses)
        .flatten();
    let pulled = containers
        .find(|container| container.name == FUNCTION_CONTAINER)
        .and_then(|container| container.image_id.rsplit_once('@'))
        .and_then(|(_, digest)| Digest::parse(digest).ok());
    match pulled {
        Some(digest) => image.at_digest(digest),
        None => image,
    }
}

/// Returns the phase of a pod that is not being deleted.
fn phase(status: &PodStatus) -> PodPhase {
    match status.phase.as_deref() {
        Some("Failed") => return PodPhase::Failed(ended(status, "Failed")),
        Some("Succeeded") => return PodPhase::Failed(ended(status, "Completed")),
        _ => {}
    }
    let containers = || {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    };
    if let Some(failure) = containers().find_map(start_failure) {
        return PodPhase::Failed(failure);
    }
    if condition(status, "Ready").is_some_and(|condition| condition.status == "True") {
        return PodPhase::Ready;
    }
    let unschedulable = condition(status, "PodScheduled").and_then(unschedulable);
    let waits_for = match unschedulable {
        Some(failure) => Some(join(&failure.reason, &failure.message)),
        None => containers().find_map(waiting),
    };
    PodPhase::Starting(waits_for.map(Into::into))
}

/// Returns the failure of a pod that has ended, with the exit of its container.
fn ended(status: &PodStatus, otherwise: &str) -> PodFailure {
    let all = || status.container_statuses.iter().flatten();
    let function = all().find(|container| container.name == FUNCTION_CONTAINER);
    let exit = function.into_iter().chain(all()).find_map(exit_details);
    let message = [status.message.clone(), exit];
    let message: Vec<_> = message.into_iter().flatten().collect();
    PodFailure {
        reason: status.reason.as_deref().unwrap_or(otherwise).into(),
        message: message.join("; ").into(),
    }
}

/// Returns the failure of a container for which more waiting does not help.
fn start_failure(container: &ContainerStatus) -> Option<PodFailure> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    if !START_FAILURES.contains(&reason) {
        return None;
    }
    let mut message = waiting.message.clone().unwrap_or_default();
    if let Some(exit) = exit_details(container) {
        if !message.is_empty() {
            message.push_str("; ");
        }
        message.push_str(&exit);
    }
    if container.name != FUNCTION_CONTAINER {
        message = format!("container {}: {message}", container.name);
    }
    Some(PodFailure {
        reason: reason.into(),
        message: message.into(),
    })
}

/// Returns the exit reason and code of a container, and the last lines it printed.
///
/// The kubelet puts these lines into the container's status.
fn exit_details(container: &ContainerStatus) -> Option<String> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    let ended = states
        .into_iter()
        .flatten()
        .find_map(|state| state.terminated.as_ref())?;
    let exit = match (&ended.reason, ended.exit_code) {
        (Some(reason), code) => format!("{reason}, exit code {code}"),
        (None, code) => format!("exit code {code}"),
    };
    match ended.message.as_deref().map(str::trim) {
        Some(lines) if !lines.is_empty() => Some(format!("{exit}: {lines}")),
        _ => Some(exit),
    }
}

/// Returns the reason why a container has not started yet.
fn waiting(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(join(waiting.reason.as_deref()?, message))
}

fn unschedulable(condition: &PodCondition) -> Option<PodFailure> {
    let is_unschedulable =
        condition.status == "False" && condition.reason.as_deref() == Some("Unschedulable");
    is_unschedulable.then(|| PodFailure {
        reason: "Unschedulable".into(),
        message: condition.message.as_deref().unwrap_or_default().into(),
    })
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    let mut all = status.conditions.iter().flatten();
    all.find(|condition| condition.type_ == kind)
}

/// Returns the reason with its message, if there is one.
fn join(reason: &str, message: &str) -> String {
    if message.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn observation_of(status: &Value) -> PodObservation {
        let pod = json!({
            "metadata": {
                "name": "fn-1", "uid": "u1", "resourceVersion": "5",
                "annotations": {TEMPLATE_VERSION: "17", RECLAIM_AFTER: "1000"},
            },
            "spec": {"containers": [{"name": "function", "image": "ghcr.io/x/fn:v1"}]},
            "status": status,
        });
        observe(&serde_json::from_value(pod).unwrap()).unwrap()
    }

    fn container(name: &str, state: &Value, last: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 1,
               "state": state, "lastState": last})
    }

    #[test]
    fn reads_annotations_and_address() {
        let observation = observation_of(
            &json!({"podIP": "198.18.0.7", "conditions": [{"type": "Ready", "status": "True"}]}),
        );
        let limit = 6_291_456;
        assert_eq!(
            observation.observed.template,
            TemplateVersion::of_pod("17", limit, "")
        );
        assert_eq!(
            observation.observed.reclaim_after,
            Some(Time::from_unix_secs(1000))
        );
        assert_eq!(observation.address, Some([198, 18, 0, 7].into()));
        assert!(matches!(observation.observed.phase, PodPhase::Ready));
    }

    #[rstest]
    #[case::go(json!(["--port", "9446", "--max-request-body-size", "20", "--", "fn"]), 20)]
    #[case::one_word(json!(["-max-request-body-size=20"]), 20)]
    #[case::the_last_counts(json!(["--max-request-body-size=7", "--max-request-body-size=20"]), 20)]
    #[case::the_functions_own(json!(["--", "fn", "--max-request-body-size=7"]), 6_291_456)]
    #[case::none(json!([]), 6_291_456)]
    fn reads_the_wrappers_message_limit_from_its_arguments(
        #[case] args: Value,
        #[case] limit: u64,
    ) {
        let pod = json!({
            "metadata": {
                "name": "fn-v1-1-abcd-x7k2p", "uid": "u1", "resourceVersion": "5",
                "labels": {IMAGE_LABEL: "fn-v1-1-abcd"},
                "annotations": {TEMPLATE_VERSION: "17"},
            },
            "spec": {"containers": [
                {"name": "function", "image": "ghcr.io/x/fn:v1", "args": args}]},
        });
        let observation = observe(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!(observation.observed.slot.as_str(), "fn-v1-1-abcd");
        assert_eq!(
            observation.observed.template,
            TemplateVersion::of_pod("17", limit, "")
        );
    }

    #[rstest]
    #[case::init(json!({"initContainers": [{"name": "copy-wrapper-server", "image": "wrapper:v2"}]}))]
    #[case::volume(json!({"volumes": [
        {"name": "wrapper-server-tools", "image": {"reference": "wrapper:v2"}}]}))]
    fn reads_the_wrappers_image_from_the_spec(#[case] spec: Value) {
        let mut pod = json!({
            "metadata": {"name": "fn-1", "uid": "u1", "resourceVersion": "5"},
            "spec": {"containers": [{"name": "function", "image": "ghcr.io/x/fn:v1"}]},
        });
        let given = spec.as_object().unwrap().clone();
        pod["spec"].as_object_mut().unwrap().extend(given);
        let observation = observe(&serde_json::from_value(pod).unwrap()).unwrap();
        let expected = TemplateVersion::of_pod("", 6_291_456, "wrapper:v2");
        assert_eq!(observation.observed.template, expected);
    }

    #[rstest]
    #[case("ErrImagePull")]
    #[case("ImagePullBackOff")]
    #[case("InvalidImageName")]
    #[case("CreateContainerConfigError")]
    fn reports_a_container_that_cannot_start_as_failed(#[case] reason: &str) {
        let state = json!({"waiting": {"reason": reason, "message": "no such thing"}});
        let observation = observation_of(
            &json!({"phase": "Pending", "containerStatuses": [container("function", &state, &json!({}))]}),
        );
        let PodPhase::Failed(failure) = observation.observed.phase else {
            panic!("{reason}")
        };
        assert_eq!(
            (&*failure.reason, &*failure.message),
            (reason, "no such thing")
        );
    }

    #[test]
    fn adds_the_pulled_digest_to_an_image_without_one() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let image = |status: &Value| observation_of(status).observed.image.to_string();
        assert_eq!(image(&json!({})), "ghcr.io/x/fn:v1");
        let mut running = container("function", &json!({"running": {}}), &json!({}));
        running["imageID"] = json!(format!("ghcr.io/x/fn@{digest}"));
        assert_eq!(
            image(&json!({"containerStatuses": [running]})),
            format!("ghcr.io/x/fn:v1@{digest}")
        );
    }

    #[test]
    fn reports_a_crash_with_the_last_lines_of_output() {
        let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
        let last = json!({"terminated": {"exitCode": 127, "reason": "Error", "message": "fn: not found\n"}});
        let observation = observation_of(
            &json!({"phase": "Running", "containerStatuses": [container("function", &state, &last)]}),
        );
        let PodPhase::Failed(failure) = observation.observed.phase else {
            panic!()
        };
        assert_eq!(
            &*failure.message,
            "back-off 10s; Error, exit code 127: fn: not found"
        );
    }

    #[test]
    fn reports_the_reason_of_an_eviction() {
        let observation = observation_of(
            &json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}),
        );
        let PodPhase::Failed(failure) = observation.observed.phase else {
            panic!()
        };
        assert_eq!(
            (&*failure.reason, &*failure.message),
            ("Evicted", "The node was low on memory")
        );
    }

    #[test]
    fn reports_why_a_pod_is_unschedulable() {
        let observation = observation_of(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}));
        assert_eq!(&*observation.unschedulable.unwrap().message, "0/1 nodes");
        let PodPhase::Starting(Some(waits_for)) = observation.observed.phase else {
            panic!()
        };
        assert_eq!(&*waits_for, "Unschedulable: 0/1 nodes");
    }
}
