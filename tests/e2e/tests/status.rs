//! The output of `krm status` for a runner with a pod on a real cluster.

use std::path::Path;

use e2e::{
    LIMIT, Runner, connect, evaluate, eventually, install_definitions, on_cluster, program,
    resource_list,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ListParams};
use serde_json::Value;
use tokio::process::Command;

async fn krm_status(krm: &Path, runner: &Runner, format: &str) -> String {
    let address = runner.address();
    let asked = Command::new(krm)
        .args(["status", "--address", &address, "--output", format])
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LIMIT, asked).await;
    let output = output.expect("an answer in time").expect("krm runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn shows_a_pod_with_its_start_steps_and_calls() {
    on_cluster(async |stage| {
        install_definitions(&stage).await;
        let flags = [
            "--announce-address=198.18.255.254",
            "--announce-port=0",
            "--pod-ttl=10m",
        ];
        let runner = Runner::start(&stage, &flags).await;
        let krm = program("krm");
        let image = stage.image("functions/count");
        let mut client = connect(&runner.address()).expect("an address");
        for _ in 0..2 {
            let answer = evaluate(&mut client, &image, resource_list(&[], 3)).await;
            answer.expect("the function answers");
        }
        let labelled = ListParams::default().labels("fn.kpt.dev/image");
        let pods = stage.api::<Pod>().list(&labelled).await;
        let name = pods.expect("pods can be listed").items[0].name_any();

        let mut status = Value::Null;
        // Kubernetes shows the pod's address some time after the pod has answered.
        eventually("a status with the whole start", async || {
            let text = krm_status(&krm, &runner, "json").await;
            status = serde_json::from_str(&text).expect("a document");
            !status["pod"]["functions"][0]["pods"][0]["startSeconds"]["address"].is_null()
        })
        .await;
        assert_eq!(status["phase"], "serving");
        assert_eq!(status["degraded"], Value::Array(Vec::new()), "{status:#}");
        let runtime = &status["pod"];
        assert_eq!(runtime["namespace"], stage.namespace());
        assert_eq!(runtime["inStep"], true);
        let function = &runtime["functions"][0];
        assert_eq!(function["image"], image.as_str());
        assert_eq!(function["timeToLiveSeconds"], 600.0);
        let digest = function["digest"].as_str().expect("a digest");
        assert!(digest.starts_with("sha256:"), "{digest}");
        let pod = &function["pods"][0];
        assert_eq!(pod["name"], name.as_str());
        assert_eq!(pod["state"], "ready");
        assert_eq!((&pod["served"], &pod["inFlight"]), (&2.into(), &0.into()));
        let left = pod["ttlLeftSeconds"].as_f64().expect("a number");
        // The annotation has whole seconds, rounded up.
        assert!((500.0..601.0).contains(&left), "{left}");
        let start = &pod["startSeconds"];
        let at = |step: &str| {
            start[step]
                .as_f64()
                .unwrap_or_else(|| panic!("{step}: {start}"))
        };
        assert!(
            at("created") <= at("ready") && at("ready") <= at("answered"),
            "{start}"
        );
        assert!(pod["address"].is_string(), "{pod}");

        let table = krm_status(&krm, &runner, "table").await;
        assert!(table.contains(&name) && table.contains("ready"), "{table}");
    });
}
