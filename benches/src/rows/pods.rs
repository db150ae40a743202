//! Measures functions in pods: warm calls through runner and wrapper, and first calls.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    Effort, Measured,
    latency::{APART, Turns},
    memory::peak_of,
    row_name, throughput,
};
use crate::{
    client::Client,
    cluster::{Cluster, Injection},
    functions::{Function, Functions},
    list,
    samples::Samples,
    table::{Goal, Quantity, Row, Table},
};

/// Goal for the cost of a trivial function over the floor, through runner and wrapper.
const OWN_COST: Duration = Duration::from_micros(800);

/// Goal for the duration of a first call after the container's process has started.
const AFTER_PROCESS: Duration = Duration::from_millis(200);

/// Interval at which the kubelet notices that an init container has ended or a pod is gone.
///
/// A measurement that starts when a pod has gone would always start with such an interval; pauses
/// spread floor and runner evenly over it.
const KUBELET_ROUND: Duration = Duration::from_secs(1);

/// Time limit for a pod of the floor.
const LIMIT: Duration = Duration::from_secs(60);

/// Directory of the wrapper in a pod.
const TOOLS: &str = "/wrapper-server-tools";

pub(super) async fn measure(
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let cluster = match Cluster::join().await {
        Ok(cluster) => cluster,
        Err(missing) => {
            println!("no rows of pods: {missing:#}");
            return Ok(());
        }
    };
    let measured = async {
        warm(&cluster, functions, effort, table).await?;
        cold(&cluster, effort, table).await
    }
    .await;
    cluster.leave().await?;
    measured
}

async fn warm(
    cluster: &Cluster,
    functions: &Functions,
    effort: Effort,
    table: &mut Table,
) -> Result<()> {
    let runner = cluster.runner(Some(Injection::InitContainer))?;
    let one = list::of_items(1);
    for function in [Function::Go, Function::Cat] {
        let client = Client::for_image(runner.address(), cluster.image(function)).await?;
        let measured = Measured {
            function,
            functions,
            standby: client.clone(),
            plain: client.clone(),
        };
        measured.agrees().await?;
        let (mut apart, mut close) = (Turns::default(), Turns::default());
        apart
            .take(&measured, [&client], &one, APART, effort)
            .await?;
        let before = cluster.requests();
        close
            .take(&measured, [&client], &one, Duration::ZERO, effort)
            .await?;
        let requests = cluster.requests() - before;
        let (apart_goal, close_goal) = match function {
            Function::Cat => (Goal::Known, Goal::Over(OWN_COST)),
            Function::Go | Function::Python => (Goal::AtMost(0.65), Goal::AtMost(0.9)),
        };
        for (what, turns, goal) in [
            ("pod, 1 item, 20 ms apart", apart, apart_goal),
            ("pod, 1 item, back to back", close, close_goal),
        ] {
            table.push(Row {
                name: row_name(function, what),
                floor: Some(Quantity::Time(turns.floor.median())),
                ours: Quantity::Time(turns.ours[0].median()),
                goal,
            });
        }
        let calls = effort.rounds * effort.calls;
        table.push(Row {
            name: row_name(function, &format!("pod, API requests in {calls} calls")),
            floor: None,
            ours: Quantity::Count(requests),
            goal: Goal::None,
        });
        if function == Function::Go {
            throughput::measure(&measured, "pod, ", effort, table).await?;
        } else {
            table.push(peak_of("runner to pod", runner.pid(), &client, function).await?);
        }
    }
    Ok(())
}

async fn cold(cluster: &Cluster, effort: Effort, table: &mut Table) -> Result<()> {
    for (injection, name, limit) in [
        (Injection::InitContainer, "init container", 1_050),
        (Injection::ContainerBeside, "container beside", 1_050),
        (Injection::ImageVolume, "image volume", 700),
    ] {
        let (mut process, mut answer) = (Samples::default(), Samples::default());
        for round in 0..effort.rounds {
            let pause = pause(round, effort);
            cluster.without_pods().await?;
            process.push(process_starts(cluster, injection, pause).await?);
            cluster.without_pods().await?;
            answer.push(first_call(cluster, Some(injection), pause).await?);
        }
        for goal in [
            Goal::Over(AFTER_PROCESS),
            Goal::Within(Duration::from_millis(limit)),
        ] {
            table.push(Row {
                name: format!("first call of a function, {name}"),
                floor: Some(Quantity::Time(process.median())),
                ours: Quantity::Time(answer.median()),
                goal,
            });
        }
    }
    let mut answer = Samples::default();
    for round in 0..effort.rounds {
        cluster.without_pods().await?;
        answer.push(first_call(cluster, None, pause(round, effort)).await?);
    }
    table.push(Row {
        name: "first call of a function, default flags".to_owned(),
        floor: None,
        ours: Quantity::Time(answer.median()),
        goal: Goal::Within(Duration::from_millis(850)),
    });
    Ok(())
}

/// Returns the pause of a round, which spreads the rounds evenly over the kubelet's interval.
fn pause(round: usize, effort: Effort) -> Duration {
    KUBELET_ROUND.mul_f64(round as f64 / effort.rounds as f64)
}

/// Returns the duration of the first call of a new runner.
///
/// Everything is new except the image, which the node already has.
async fn first_call(
    cluster: &Cluster,
    injection: Option<Injection>,
    pause: Duration,
) -> Result<Duration> {
    let runner = cluster.runner(injection)?;
    let client = Client::for_image(runner.address(), cluster.image(Function::Cat)).await?;
    tokio::time::sleep(pause).await;
    client.time(&list::of_items(1)).await
}

/// Returns the time from a pod's creation until its process connects to this program.
async fn process_starts(
    cluster: &Cluster,
    injection: Injection,
    pause: Duration,
) -> Result<Duration> {
    let listener = TcpListener::bind((cluster.host()?, 0)).await?;
    let pod = caller(cluster, injection, listener.local_addr()?.port())?;
    let pods = cluster.api::<Pod>();
    tokio::time::sleep(pause).await;
    let started = Instant::now();
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?)
        .await?;
    tokio::time::timeout(LIMIT, listener.accept())
        .await
        .context("the pod of the floor does not call")??;
    Ok(started.elapsed())
}

/// Returns a pod with the restrictions of the runner's pods, whose process only connects to `port`.
fn caller(cluster: &Cluster, injection: Injection, port: u16) -> Result<Value> {
    let wrapper = cluster.wrapper_image()?;
    let host = cluster.host()?.to_string();
    let mounts = json!([{"name": "tools", "mountPath": TOOLS}]);
    let copy = ["cp", "-a", "/home/nonroot/wrapper-server/.", TOOLS];
    let denied = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let mut copying = json!({
        "name": "copy",
        "image": wrapper,
        "volumeMounts": mounts,
        "securityContext": denied,
    });
    let caller = json!({
        "name": "caller",
        "securityContext": denied,
        "image": cluster.image(Function::Cat),
        "command": ["/bin/busybox", "nc", host, port.to_string()],
        "volumeMounts": mounts,
    });
    let mut volume = json!({"name": "tools", "emptyDir": {}});
    let (init, containers) = match injection {
        Injection::InitContainer => {
            copying["command"] = json!(copy);
            (json!([copying]), json!([caller]))
        }
        Injection::ContainerBeside => {
            copying["command"] = json!(["/home/nonroot/wrapper-server/wrapper-server", "hold"]);
            copying["lifecycle"] = json!({"postStart": {"exec": {"command": copy}}});
            (json!([]), json!([copying, caller]))
        }
        Injection::ImageVolume => {
            volume = json!({"name": "tools", "image": {"reference": wrapper}});
            (json!([]), json!([caller]))
        }
    };
    Ok(json!({
        "metadata": {"name": format!("caller-{port}")},
        "spec": {
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "restartPolicy": "Never",
            "initContainers": init,
            "containers": containers,
            "volumes": [volume],
        },
    }))
}
