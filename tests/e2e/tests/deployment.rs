//! The runner in the cluster, installed from `deploy/`: it works with what it is granted, keeps
//! every promise while it is replaced, and takes the place of Porch's own.

use e2e::{
    Stage, connect,
    deployment::{Callers, Deployment},
    evaluate, eventually, on_cluster, resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;

const COUNT: &str = "functions/count";

async fn function_pods(stage: &Stage) -> Vec<Pod> {
    let labelled = ListParams::default().labels("fn.kpt.dev/image");
    let list = stage.api::<Pod>().list(&labelled).await;
    list.expect("pods can be listed").items
}

/// One evaluation that must succeed, through the runner's service.
async fn count(stage: &Stage, deployment: &Deployment) {
    let mut client = connect(&deployment.address().await).expect("an address");
    let input = resource_list(&[], 3);
    let answer = evaluate(&mut client, &stage.image(COUNT), input.clone()).await;
    let answer = answer.expect("the function answers");
    assert_eq!(answer.resource_list, input.as_bytes());
}

#[test]
fn a_fresh_installation_evaluates_for_pods_and_for_this_machine() {
    on_cluster(async |stage| {
        let deployment = Deployment::install(&stage, "dev", &[]).await;
        count(&stage, &deployment).await;
        let client = json!({
            "metadata": {"name": "client"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "client",
                    "image": stage.image("tools/callers"),
                    "args": [
                        format!("-address=function-runner.{}:9445", deployment.namespace()),
                        format!("-image={}", stage.image(COUNT)),
                        "-count=3",
                    ],
                }],
            },
        });
        let client: Pod = serde_json::from_value(client).expect("a pod");
        let pods: Api<Pod> = stage.api();
        let made = pods.create(&PostParams::default(), &client).await;
        made.expect("the cluster takes the client");
        let mut phase = None;
        eventually("a client that ended", async || {
            let client = pods.get("client").await.expect("the client is there");
            phase = client.status.and_then(|status| status.phase);
            matches!(phase.as_deref(), Some("Succeeded" | "Failed"))
        })
        .await;
        assert_eq!(phase.as_deref(), Some("Succeeded"));
        assert_eq!(function_pods(&stage).await.len(), 1);
    });
}

#[test]
fn a_rolling_update_fails_no_evaluation_and_keeps_the_pods() {
    on_cluster(async |stage| {
        let deployment = Deployment::prepare(&stage).await;
        // The pool's own answer to many callers is more pods; here they must stay the same.
        deployment.apply("dev", &[]).await;
        deployment
            .own(&["scale", "deployment/function-runner", "--replicas=2"])
            .await;
        deployment.rolled_out().await;
        count(&stage, &deployment).await;
        let before = uids(&function_pods(&stage).await);
        let address = deployment.address().await;
        let callers = Callers::start(&address, &stage.image(COUNT), 20).await;
        deployment
            .own(&["rollout", "restart", "deployment/function-runner"])
            .await;
        deployment.rolled_out().await;
        deployment.gone_but(2).await;
        let said = callers.finish().await;
        assert!(said.contains(", 0 failed"), "{said}");
        assert_eq!(uids(&function_pods(&stage).await), before);
    });
}

fn uids(pods: &[Pod]) -> Vec<Option<String>> {
    let mut uids: Vec<_> = pods.iter().map(ResourceExt::uid).collect();
    uids.sort();
    uids
}
