use runner_proto::runner_status::{ExecFunction, Problem, StartStep};

use super::*;

pub(in crate::status) fn seconds(seconds: f64) -> Option<WireDuration> {
    Duration::from_secs_f64(seconds).try_into().ok()
}

fn step(step: &str, took: f64) -> StartStep {
    StartStep {
        step: step.to_owned(),
        took: seconds(took),
    }
}

/// Returns the status of a runner with every kind of content.
pub(in crate::status) fn report() -> GetStatusResponse {
    let pod = Pod {
        name: "set-namespace-v041-1-01234567".to_owned(),
        state: pod::State::Ready.into(),
        current_template: true,
        age: seconds(200.0),
        in_flight: 1,
        served: 12,
        ttl_left: seconds(1799.6),
        address: "198.19.0.7".to_owned(),
        way: pod::Way::Service.into(),
        start: vec![
            step("metadata", 0.004),
            step("created", 0.012),
            step("listening", 0.91),
            step("ready", 1.034),
        ],
    };
    let starting = Pod {
        name: "set-namespace-v041-2-01234567".to_owned(),
        state: pod::State::Starting.into(),
        current_template: false,
        age: seconds(0.7),
        ttl_left: seconds(1800.0),
        start: vec![step("created", 0.01)],
        ..Pod::default()
    };
    GetStatusResponse {
        version: "0.1.0".to_owned(),
        uptime: seconds(7390.0),
        phase: Phase::Serving.into(),
        degraded: vec!["the pod template is not used as it is: no container".to_owned()],
        problems: vec![Problem {
            severity: problem::Severity::Error.into(),
            source: "FunctionConfig fns/a".to_owned(),
            message: "binary /opt/x cannot be used".to_owned(),
        }],
        exec: Some(ExecRuntime {
            parallel: 2,
            running: 1,
            queued: 0,
            max_queued: 1024,
            functions: vec![
                ExecFunction {
                    image: "ghcr.io/x/apply-setters".to_owned(),
                    versions: vec!["v0.2.0".to_owned(), "v0.2.1".to_owned()],
                    path: "/functions/apply-setters".to_owned(),
                    standby: 1,
                    ..ExecFunction::default()
                },
                ExecFunction {
                    image: "ghcr.io/x/generate".to_owned(),
                    versions: vec!["v1".to_owned()],
                    path: "/functions/generate".to_owned(),
                    standby_off: "ended (exit status 0) before its input arrived".to_owned(),
                    ..ExecFunction::default()
                },
            ],
        }),
        pod: Some(PodRuntime {
            namespace: "porch-fn-system".to_owned(),
            in_step: true,
            template_version: "4711".to_owned(),
            wrapper_injection: "image".to_owned(),
            wrapper_injection_reason: "the API server accepts image volumes".to_owned(),
            max_queued: 256,
            functions: vec![PodFunction {
                image: "ghcr.io/x/set-namespace:v0.4.1".to_owned(),
                digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
                queued: 3,
                max_pods: 2,
                max_waitlist: 2,
                time_to_live: seconds(1800.0),
                pods: vec![pod, starting],
                ..PodFunction::default()
            }],
            pods_created: 2,
            ..PodRuntime::default()
        }),
    }
}

#[test]
fn everything_fits_a_terminal() {
    let text = tables(&report(), "localhost:9445", 100);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_narrow_terminal_wraps_cells() {
    let text = tables(&report(), "localhost:9445", 60);
    let tables = text
        .lines()
        .filter(|line| line.starts_with(['│', '┌', '╞', '└']));
    assert!(tables.clone().count() > 10);
    for line in tables {
        assert!(line.chars().count() <= 60, "{text}");
    }
}

#[test]
fn distinguishes_unknown_pods_from_no_pods() {
    let mut report = report();
    report.pod = Some(PodRuntime {
        namespace: "fns".to_owned(),
        ..PodRuntime::default()
    });
    let text = tables(&report, "x:1", 100);
    assert!(text.contains("Pods in fns: not known yet"), "{text}");
}

#[test]
fn replaces_escape_sequences_from_the_server() {
    let mut report = report();
    report.degraded = vec!["\x1b[2J".to_owned()];
    assert!(!tables(&report, "x:1", 100).contains('\x1b'));
}

#[test]
fn formats_durations_in_two_units() {
    let shown = [0.4, 59.0, 60.0, 3599.0, 7380.0, 90_000.0].map(|it| short(seconds(it)));
    assert_eq!(shown, ["0s", "59s", "1m", "59m 59s", "2h 3m", "1d 1h"]);
    assert_eq!(short(None), "-");
}
