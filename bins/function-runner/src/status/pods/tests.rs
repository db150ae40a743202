use std::{collections::HashMap, sync::Arc};

use runner_cluster::{Injection, InjectionReason, InjectionStatus};
use runner_core::Reason;
use runner_pool::{Counters, Settings, Snapshot};

use super::*;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn survey() -> Survey {
    let pod = runner_pool::PodStatus {
        name: "fn-v1-1-01234567".into(),
        uid: Some("u1".into()),
        state: PodState::Ready,
        current: true,
        age: Duration::from_secs(5),
        in_flight: 1,
        served: 2,
        ttl_left: Duration::from_secs(60),
    };
    let function = FunctionStatus {
        image: Arc::new(format!("ghcr.io/x/fn:v1@{DIGEST}").parse().unwrap()),
        settings: Settings {
            max_pods: 0,
            ..Settings::default()
        },
        queued: 3,
        superseded: false,
        start_failure: None,
        pods: vec![pod],
    };
    Survey {
        pool: Snapshot {
            functions: vec![function],
            template: "4711".into(),
            counters: Counters::default(),
            draining: false,
        },
        addresses: HashMap::new(),
        starts: HashMap::new(),
        announcements_refused: 1,
        cold: std::collections::BTreeMap::new(),
        injection: Some(InjectionStatus {
            injection: Injection::Container,
            reason: InjectionReason::Refused,
            detail: "the API server drops image volumes".to_owned(),
        }),
        template_error: None,
    }
}

fn filled_report(survey: &Survey) -> (PodRuntime, Vec<String>) {
    let (mut report, mut degraded) = (PodRuntime::default(), BTreeSet::new());
    fill(&mut report, survey, &mut degraded);
    (report, degraded.into_iter().collect())
}

#[test]
fn reports_tag_and_digest_separately() {
    let (report, degraded) = filled_report(&survey());
    let function = &report.functions[0];
    assert_eq!(
        (function.image.as_str(), function.digest.as_str()),
        ("ghcr.io/x/fn:v1", DIGEST)
    );
    assert_eq!((function.queued, function.max_pods), (3, 1));
    assert_eq!(report.template_version, "4711");
    assert_eq!(report.wrapper_injection, "container");
    assert_eq!(report.announcements_refused, 1);
    assert!(degraded.is_empty(), "{degraded:?}");
}

#[test]
fn reports_start_steps_in_chronological_order() {
    let mut survey = survey();
    let milliseconds = |number| Some(Duration::from_millis(number));
    let start = StartPhases {
        metadata: milliseconds(90),
        created: milliseconds(10),
        listening: milliseconds(40),
        // Kubernetes may show the address after the wrapper has sent its announcement.
        address: milliseconds(70),
        ready: milliseconds(50),
        ..StartPhases::default()
    };
    survey.starts.insert("u1".into(), start);
    survey
        .addresses
        .insert("u1".into(), PodAddress::Service([198, 19, 0, 7].into()));
    let (report, _) = filled_report(&survey);
    let pod = &report.functions[0].pods[0];
    let steps: Vec<_> = pod.start.iter().map(|phase| phase.step.as_str()).collect();
    assert_eq!(
        steps,
        ["metadata", "created", "listening", "ready", "address"]
    );
    assert_eq!(pod.way(), pod::Way::Service);
    assert_eq!(pod.address, "198.19.0.7");
}

#[test]
fn reports_failed_pod_starts_as_degraded() {
    let mut survey = survey();
    let failure = EvaluationError::new(Reason::PodStartFailed, "ErrImagePull: no such image");
    survey.pool.functions[0].start_failure = Some((failure, Duration::from_secs(2)));
    survey.template_error = Some("no container".to_owned());
    let (report, degraded) = filled_report(&survey);
    let failure = report.functions[0].start_failure.as_ref().unwrap();
    assert_eq!(failure.reason, "POD_START_FAILED");
    assert_eq!(
        degraded,
        [
            "no pod starts for ghcr.io/x/fn:v1: ErrImagePull: no such image",
            "the pod template is not used as it is: no container",
        ]
    );
}
