//! Tests of the status service.

use std::time::Duration;

use runner_proto::runner_status::{GetStatusResponse, Phase};
use runner_test_support::{Client, Gate, LIMIT, LIST, eventually_async, list_of};

use crate::support::Setup;

/// Requests the status until it satisfies the condition.
async fn reports(client: &Client, is: impl Fn(&GetStatusResponse) -> bool) -> GetStatusResponse {
    let status = async || Some(client.status().await).filter(&is);
    eventually_async("a status report", status).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_running_queued_and_standby_counts() {
    let gate = Gate::new();
    let runner = Setup::with("hold", &gate.script())
        .function("idle", "cat")
        .entry("gone", &["example.com/fn/gone:v1"])
        .flag("--max-parallel-executions=1")
        .flag("--max-queued-executions=7")
        .start()
        .await;
    let client = runner.client().await;
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("hold").await })
        })
        .collect();
    gate.holds(1).await;
    let busy = reports(&client, |report| {
        let exec = report.exec.as_ref().unwrap();
        (exec.running, exec.queued) == (1, 1)
    })
    .await;
    assert_eq!(busy.phase(), Phase::Serving);
    assert_eq!(busy.version, env!("CARGO_PKG_VERSION"));
    let uptime = Duration::try_from(busy.uptime.unwrap()).unwrap();
    assert!(uptime > Duration::ZERO && uptime < LIMIT, "{uptime:?}");
    assert!(busy.pod.is_none(), "the pod runtime is off");
    let exec = busy.exec.unwrap();
    assert_eq!((exec.parallel, exec.max_queued), (1, 7));
    let image = |name: &str| format!("example.com/fn/{name}");
    let images: Vec<_> = exec.functions.iter().map(|it| it.image.clone()).collect();
    assert_eq!(images, ["gone", "hold", "idle"].map(image));
    assert_eq!(exec.functions[1].versions, ["v1"]);
    assert!(
        busy.problems[0].message.contains("functions/gone"),
        "{:?}",
        busy.problems
    );

    gate.open();
    for call in calls {
        assert_eq!(list_of(call.await.unwrap()), LIST);
    }
    let rested = reports(&client, |report| {
        let exec = report.exec.as_ref().unwrap();
        exec.running == 0 && exec.functions[1].standby == 1
    })
    .await;
    let exec = rested.exec.unwrap();
    assert_eq!((exec.queued, exec.functions[2].standby), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_standbys_when_the_configuration_turns_standby_off() {
    let runner = Setup::with("reader", "cat").start().await;
    let client = runner.client().await;
    assert_eq!(list_of(client.call("reader").await), LIST);
    let standby = |report: &GetStatusResponse| report.exec.as_ref().unwrap().functions[0].standby;
    reports(&client, |report| standby(report) == 1).await;
    let config = runner.setup.config_file();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}  standby: false\n")).unwrap();
    reports(&client, |report| {
        standby(report) == 0 && runner.resources().children == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_why_functions_have_no_standby() {
    let list = LIST.replace('\n', "\\n");
    let runner = Setup::new()
        .function("generate", &format!("printf '{list}'"))
        .function("reader", "cat")
        .function("configured", "cat")
        .without_standby()
        .start()
        .await;
    let client = runner.client().await;
    for function in ["generate", "reader", "configured"] {
        assert_eq!(list_of(client.call(function).await), LIST);
    }
    let report = reports(&client, |report| {
        let functions = &report.exec.as_ref().unwrap().functions;
        !functions[1].standby_off.is_empty() && functions[2].standby == 1
    })
    .await;
    let functions = report.exec.unwrap().functions;
    let told = functions.iter().map(|it| (it.standby, &*it.standby_off));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (0, "turned off by the configuration"),
            (0, "ended (exit status 0) before its input arrived"),
            (1, "")
        ]
    );
    let warned = runner.logged("gets no standby").await;
    let program = warned["program"].as_str().unwrap();
    assert!(program.ends_with("functions/generate"), "{warned}");
}
