//! Half a minute without an API server.

use std::time::{Duration, Instant};

use e2e::{
    Load, Runner, connect, evaluate, evaluate_within, function_pod_uids, function_pods,
    on_disturbed_cluster, resource_list,
};
use runner_core::Reason;

const OUTAGE: Duration = Duration::from_secs(30);

#[test]
fn warm_functions_go_on_without_the_api_server_and_cold_ones_when_it_is_back() {
    on_disturbed_cluster(async |stage| {
        let runner = Runner::start_at_home(&stage, &[]).await;
        let load = Load::start(4, &runner.address(), &stage.image("functions/count"));
        load.goes_on(20).await;
        let warm = function_pod_uids(&stage).await;

        let begun = Instant::now();
        let fault = stage.bed().without_api_server();
        let fault = fault.expect("the API server ends");
        let cold = stage.image("functions/wait");
        let mut client = connect(&runner.address()).expect("an address");
        // As long as the outage: the callers of the warm function call all the while.
        let left = OUTAGE.saturating_sub(begun.elapsed());
        let late = evaluate_within(left, &mut client, &cold, resource_list(&[], 1)).await;
        let status = late.expect_err("nobody can start a pod");
        let error = runner_proto::status::decode(&status);
        assert_eq!(error.reason(), Reason::KubernetesUnreachable, "{status:?}");
        assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
        load.goes_on(20).await;
        fault.heal().expect("the API server starts again");
        let answer = evaluate(&mut client, &cold, resource_list(&[], 1)).await;
        answer.expect("a pod is started now");
        load.goes_on(20).await;
        load.ends_well().await;
        let after = function_pod_uids(&stage).await;
        assert!(warm.iter().all(|uid| after.contains(uid)), "{after:?}");
        assert_eq!(function_pods(&stage).await.len(), 2);
    });
}
