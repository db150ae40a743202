//! Reports the pod runtime: functions with their queues and pods.

use std::{collections::BTreeSet, time::Duration};

use runner_cluster::WatchState;
use runner_core::EvaluationError;
use runner_pod::{PodAddress, Readiness, StartPhases, Survey};
use runner_pool::{FunctionStatus, PodState};
use runner_proto::runner_status::{Pod, PodFunction, PodRuntime, StartFailure, StartStep, pod};
use tokio::{sync::watch, time::timeout};

use super::{count, duration};

/// Time limit for the driver's answer, 1 s. It usually takes microseconds; a timeout is reported.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(1);

/// The pod runtime with the settings that its report contains.
pub(crate) struct PodStatus {
    pub(crate) pods: runner_pod::Pod,
    pub(crate) objects: watch::Receiver<WatchState>,
    pub(crate) namespace: String,
    pub(crate) max_queued: usize,
}

// === impl PodStatus ===

impl PodStatus {
    /// Returns the report without waiting for the cluster; adds what is unknown to `degraded`.
    pub(super) async fn report(&self, degraded: &mut BTreeSet<String>) -> PodRuntime {
        let mut report = PodRuntime {
            namespace: self.namespace.clone(),
            in_step: *self.pods.readiness().borrow() == Readiness::Ready,
            max_queued: count(self.max_queued),
            ..PodRuntime::default()
        };
        match &*self.objects.borrow() {
            WatchState::Pending => {
                degraded.insert("FunctionConfig objects are not read yet".to_owned());
            }
            WatchState::Unavailable(why) => {
                degraded.insert(format!("FunctionConfig objects are not used: {why}"));
            }
            WatchState::Synced => {}
        }
        if !report.in_step {
            degraded.insert(
                "the pods of the cluster are not known yet: the Kubernetes API server has not \
                 shown pods, services and templates"
                    .to_owned(),
            );
            return report;
        }
        match timeout(SURVEY_TIMEOUT, self.pods.survey()).await {
            Ok(Some(survey)) => fill(&mut report, &survey, degraded),
            Ok(None) => {}
            Err(_) => {
                degraded.insert(format!(
                    "the pod runtime did not answer within {SURVEY_TIMEOUT:?}"
                ));
            }
        }
        report
    }
}

fn fill(report: &mut PodRuntime, survey: &Survey, degraded: &mut BTreeSet<String>) {
    if let Some(error) = &survey.template_error {
        degraded.insert(format!("the pod template is not used as it is: {error}"));
    }
    for (image, why) in &survey.cold {
        degraded.insert(format!("no pod is kept warm for {image}: {why}"));
    }
    let pool = &survey.pool;
    report.template_version = pool.template.to_string();
    if let Some(injection) = &survey.injection {
        report.wrapper_injection = injection.injection.to_string();
        report.wrapper_injection_reason = injection.detail.clone();
    }
    report.functions = pool
        .functions
        .iter()
        .map(|status| function(status, survey))
        .collect();
    for failing in report.functions.iter() {
        if let Some(failure) = &failing.start_failure {
            let (image, why) = (&failing.image, &failure.message);
            degraded.insert(format!("no pod starts for {image}: {why}"));
        }
    }
    report.pods_created = pool.counters.created;
    report.pods_deleted = pool.counters.deleted;
    report.pods_adopted = pool.counters.adopted;
    report.starts_failed = pool.counters.starts_failed;
    report.announcements_refused = survey.announcements_refused;
}

fn function(status: &FunctionStatus, survey: &Survey) -> PodFunction {
    let digest = status.image.digest().map(ToString::to_string);
    let digest = digest.unwrap_or_default();
    let image = status.image.to_string();
    let named = image
        .strip_suffix(&digest)
        .and_then(|image| image.strip_suffix('@'));
    PodFunction {
        image: named.unwrap_or(&image).to_owned(),
        digest,
        superseded: status.superseded,
        queued: count(status.queued),
        max_pods: count(status.settings.max_pods.max(1)),
        max_waitlist: count(status.settings.max_waitlist.max(1)),
        time_to_live: duration(status.settings.ttl),
        start_failure: status.start_failure.as_ref().map(start_failure),
        pods: status
            .pods
            .iter()
            .map(|pod| self::pod(pod, survey))
            .collect(),
    }
}

fn start_failure((error, retry_in): &(EvaluationError, Duration)) -> StartFailure {
    StartFailure {
        reason: error.reason().as_str().to_owned(),
        message: error.message().to_owned(),
        retry_in: duration(*retry_in),
    }
}

fn pod(status: &runner_pool::PodStatus, survey: &Survey) -> Pod {
    let uid = status.uid.as_ref();
    let (address, way) = match uid.and_then(|uid| survey.addresses.get(uid)) {
        Some(PodAddress::Pod(address)) => (address.to_string(), pod::Way::Pod),
        Some(PodAddress::Service(address)) => (address.to_string(), pod::Way::Service),
        None => (String::new(), pod::Way::Unspecified),
    };
    Pod {
        name: status.name.to_string(),
        state: state(status.state).into(),
        current_template: status.current,
        age: duration(status.age),
        in_flight: count(status.in_flight),
        served: status.served,
        ttl_left: duration(status.ttl_left),
        address,
        way: way.into(),
        start: uid
            .and_then(|uid| survey.starts.get(uid))
            .map(steps)
            .unwrap_or_default(),
    }
}

/// Returns the steps of a pod start in the order in which they happened.
fn steps(phases: &StartPhases) -> Vec<StartStep> {
    let mut steps = [
        ("metadata", phases.metadata),
        ("created", phases.created),
        ("scheduled", phases.scheduled),
        ("address", phases.address),
        ("listening", phases.listening),
        ("ready", phases.ready),
        ("answered", phases.answered),
    ];
    // The first step has its own start; all others are measured from the request for the pod.
    steps[1..].sort_by_key(|(_, after)| *after);
    let seen = steps
        .into_iter()
        .filter_map(|(step, took)| Some((step, took?)));
    seen.map(|(step, took)| StartStep {
        step: step.to_owned(),
        took: duration(took),
    })
    .collect()
}

fn state(state: PodState) -> pod::State {
    match state {
        PodState::Creating => pod::State::Creating,
        PodState::Starting => pod::State::Starting,
        PodState::Ready => pod::State::Ready,
        PodState::Suspect => pod::State::Suspect,
        PodState::Abandoned => pod::State::Abandoned,
        PodState::Failed => pod::State::Failed,
        PodState::Deleting => pod::State::Deleting,
    }
}

#[cfg(test)]
mod tests;
