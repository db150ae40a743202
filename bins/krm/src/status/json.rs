//! Formats a runner's status as one JSON document.
//!
//! Names are stable: fields may be added, but not renamed or removed.

use std::time::Duration;

use runner_proto::{
    WireDuration,
    runner_status::{ExecRuntime, GetStatusResponse, Pod, PodFunction, PodRuntime, pod, problem},
};
use serde_json::{Map, Value, json};

use super::show;

pub(super) fn document(report: &GetStatusResponse) -> Value {
    let problems: Vec<Value> = report
        .problems
        .iter()
        .map(|problem| {
            let severity = match problem.severity() {
                problem::Severity::Warning => "warning",
                _ => "error",
            };
            json!({"severity": severity, "source": problem.source, "message": problem.message})
        })
        .collect();
    json!({
        "version": report.version,
        "phase": show::phase(report.phase()),
        "uptimeSeconds": seconds(report.uptime),
        "degraded": report.degraded,
        "problems": problems,
        "exec": report.exec.as_ref().map(exec),
        "pod": report.pod.as_ref().map(pods),
    })
}

fn exec(exec: &ExecRuntime) -> Value {
    let functions: Vec<Value> = exec
        .functions
        .iter()
        .map(|function| {
            json!({
                "image": function.image,
                "versions": function.versions,
                "path": function.path,
                "standby": function.standby,
                "standbyOff": Some(&function.standby_off).filter(|why| !why.is_empty()),
            })
        })
        .collect();
    json!({
        "parallel": exec.parallel,
        "running": exec.running,
        "queued": exec.queued,
        "maxQueued": exec.max_queued,
        "functions": functions,
    })
}

fn pods(runtime: &PodRuntime) -> Value {
    json!({
        "namespace": runtime.namespace,
        "inStep": runtime.in_step,
        "templateVersion": runtime.template_version,
        "wrapperInjection": runtime.wrapper_injection,
        "wrapperInjectionReason": runtime.wrapper_injection_reason,
        "maxQueued": runtime.max_queued,
        "functions": runtime.functions.iter().map(function).collect::<Vec<_>>(),
        "podsCreated": runtime.pods_created,
        "podsDeleted": runtime.pods_deleted,
        "podsAdopted": runtime.pods_adopted,
        "startsFailed": runtime.starts_failed,
        "announcementsRefused": runtime.announcements_refused,
    })
}

fn function(function: &PodFunction) -> Value {
    let failure = function.start_failure.as_ref().map(|failure| {
        json!({
            "reason": failure.reason,
            "message": failure.message,
            "retryInSeconds": seconds(failure.retry_in),
        })
    });
    json!({
        "image": function.image,
        "digest": function.digest,
        "superseded": function.superseded,
        "queued": function.queued,
        "maxPods": function.max_pods,
        "maxWaitlist": function.max_waitlist,
        "timeToLiveSeconds": seconds(function.time_to_live),
        "startFailure": failure,
        "pods": function.pods.iter().map(pod).collect::<Vec<_>>(),
    })
}

fn pod(pod: &Pod) -> Value {
    let way = match pod.way() {
        pod::Way::Pod => Some("pod"),
        pod::Way::Service => Some("service"),
        pod::Way::Unspecified => None,
    };
    let start: Map<String, Value> = pod
        .start
        .iter()
        .map(|step| (step.step.clone(), json!(seconds(step.took))))
        .collect();
    json!({
        "name": pod.name,
        "state": show::state(pod.state()),
        "currentTemplate": pod.current_template,
        "ageSeconds": seconds(pod.age),
        "inFlight": pod.in_flight,
        "served": pod.served,
        "ttlLeftSeconds": seconds(pod.ttl_left),
        "address": way.map(|_| &pod.address),
        "way": way,
        "startSeconds": start,
    })
}

fn seconds(duration: Option<WireDuration>) -> Option<f64> {
    Some(Duration::try_from(duration?).ok()?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_keeps_its_names() {
        let report = show::tests::report();
        insta::assert_snapshot!(format!("{:#}", document(&report)));
    }

    #[test]
    fn shows_a_disabled_runtime_as_null() {
        let document = document(&GetStatusResponse::default());
        assert_eq!(
            (&document["exec"], &document["pod"]),
            (&Value::Null, &Value::Null)
        );
    }
}
