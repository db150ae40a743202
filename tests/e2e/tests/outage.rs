//! An outage of the API server for 30 s, and an API server that hangs.

use std::time::{Duration, Instant};

use e2e::{
    Load, Runner, Stage, connect, evaluate, evaluate_within, function_pod_uids,
    on_disturbed_cluster, resource_list,
};
use runner_core::{EvaluationError, Reason};
use testbed::Component;

const OUTAGE: Duration = Duration::from_secs(30);
/// Longer than the runner waits for one response, so that it has retried.
const HANG: Duration = Duration::from_millis(11_500);
const IMPATIENT: Duration = Duration::from_secs(2);
/// Maximum delay of a response after the caller's deadline.
const GRACE: Duration = Duration::from_millis(500);

/// The callers of a warm function, which the outage must not affect.
struct Warm {
    load: Load,
    pods: Vec<String>,
}

impl Warm {
    async fn start(stage: &Stage, runner: &Runner) -> Self {
        let load = Load::start(4, &runner.address(), &stage.image("functions/count"));
        load.wait_for_answers(20).await;
        let pods = function_pod_uids(stage).await;
        Self { load, pods }
    }

    /// Checks the state after the API server is back.
    ///
    /// The cold function gets exactly one pod and none for its failed calls. The warm function has
    /// kept its pod.
    async fn goes_on_beside(self, stage: &Stage, runner: &Runner, cold: &str) {
        let mut client = connect(&runner.address()).expect("an address");
        let answer = evaluate(&mut client, cold, resource_list(&[], 1)).await;
        answer.expect("a pod is started now");
        self.load.wait_for_answers(20).await;
        self.load.stop_without_failures().await;
        let after = function_pod_uids(stage).await;
        assert!(self.pods.iter().all(|uid| after.contains(uid)), "{after:?}");
        assert_eq!(after.len(), 2);
    }
}

#[test]
fn warm_functions_answer_during_an_outage_of_the_api_server_and_cold_ones_after_it() {
    on_disturbed_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let warm = Warm::start(&stage, &runner).await;

        let begun = Instant::now();
        let fault = stage.bed().without_api_server();
        let fault = fault.expect("the API server ends");
        let cold = stage.image("functions/wait");
        let mut client = connect(&runner.address()).expect("an address");
        // This call lasts as long as the outage; the callers of the warm function call meanwhile.
        let left = OUTAGE.saturating_sub(begun.elapsed());
        let late = evaluate_within(left, &mut client, &cold, resource_list(&[], 1)).await;
        let status = late.expect_err("nobody can start a pod");
        let error = runner_proto::status::decode(&status);
        assert_eq!(error.reason(), Reason::KubernetesUnreachable, "{status:?}");
        assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
        warm.load.wait_for_answers(20).await;
        fault.heal().expect("the API server starts again");
        warm.goes_on_beside(&stage, &runner, &cold).await;
        let log = runner.log();
        let said = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!(
            said("outage: the Kubernetes API server cannot be reached: Conn"),
            1,
            "{log}"
        );
        assert_eq!(said("the Kubernetes API server answers again"), 1, "{log}");
        assert_eq!(said(" WARN ") + said("ERROR "), 1, "{log}");
    });
}

/// Calls a cold function, and returns the error, which must arrive in time.
async fn in_vain(runner: &Runner, image: &str, patience: Duration) -> EvaluationError {
    let mut client = connect(&runner.address()).expect("an address");
    let begun = Instant::now();
    let late = evaluate_within(patience, &mut client, image, resource_list(&[], 1)).await;
    let (took, status) = (begun.elapsed(), late.expect_err("nobody can start a pod"));
    assert!(took < patience + GRACE, "{took:?}: {status}");
    runner_proto::status::decode(&status)
}

#[test]
fn a_hanging_api_server_delays_only_cold_functions() {
    on_disturbed_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let warm = Warm::start(&stage, &runner).await;

        let fault = stage.bed().with_hanging(Component::ApiServer);
        let fault = fault.expect("the API server can be stopped");
        let cold = stage.image("functions/wait");
        let (early, late) = tokio::join!(
            in_vain(&runner, &cold, IMPATIENT),
            in_vain(&runner, &cold, HANG),
        );
        // The API server may only be slow, so at first the error is only about the deadline.
        assert_eq!(early.reason(), Reason::DeadlineExceeded, "{early}");
        let silent = "the Kubernetes API server has not answered";
        assert!(early.message().contains(silent), "{early}");
        assert_eq!(late.reason(), Reason::KubernetesUnreachable, "{late}");
        assert!(late.message().contains("no answer within"), "{late}");
        warm.load.wait_for_answers(20).await;

        fault.heal().expect("the API server goes on");
        warm.goes_on_beside(&stage, &runner, &cold).await;
    });
}
