//! Telemetry of pods: metrics and traces of their start, and complete errors.

use e2e::{
    ANNOUNCE_FLAGS, Runner, connect, evaluate, eventually, function_pods, on_cluster, resource_list,
};
use kube::ResourceExt;
use runner_proto::{
    evaluator::{EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient},
    status,
};
use runner_test_support::{
    free_address, metrics_page,
    otlp::{Collector, attribute, hex},
};
use tonic::{Code, transport::Endpoint};

const COUNT: &str = "functions/count";

#[test]
fn every_step_of_a_cold_start_is_measured() {
    on_cluster(async |stage| {
        let metrics = free_address();
        let environment = [
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1"),
            (
                "OTEL_EXPORTER_PROMETHEUS_PORT",
                &*metrics.port().to_string(),
            ),
        ];
        let runner = Runner::start_in(&stage, &ANNOUNCE_FLAGS, &environment).await;
        let mut client = connect(&runner.address()).expect("an address");
        for _ in 0..2 {
            let answer = evaluate(&mut client, &stage.image(COUNT), resource_list(&[], 1)).await;
            answer.expect("the function answers");
        }
        let phases = [
            "metadata",
            "created",
            "scheduled",
            "listening",
            "address",
            "ready",
            "answered",
        ];
        for phase in phases {
            let label = format!("phase=\"{phase}\"");
            // Kubernetes may show the address after the response.
            eventually(phase, async || {
                let page = metrics_page(metrics).await;
                let counted = page.lines().find(|line| {
                    line.starts_with("function_runner_pod_start_duration_seconds_count{")
                        && line.contains(&label)
                });
                counted.is_some_and(|line| line.ends_with(" 1"))
            })
            .await;
        }
        // The pod announced itself exactly once, even if the watch was faster.
        let page = metrics_page(metrics).await;
        let heard = page
            .lines()
            .filter(|line| line.starts_with("function_runner_pods_announcements_total{"));
        let heard: Vec<_> = heard.collect();
        let [line] = heard[..] else {
            panic!("{heard:?}")
        };
        assert!(!line.contains("refused") && line.ends_with(" 1"), "{line}");
    });
}

#[test]
fn a_cold_start_is_part_of_its_callers_trace() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    on_cluster(async |stage| {
        let environment = [
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        let runner = Runner::start_in(&stage, &ANNOUNCE_FLAGS, &environment).await;
        let mut client = connect(&runner.address()).expect("an address");
        let mut request = tonic::Request::new(EvaluateFunctionRequest {
            resource_list: resource_list(&[], 1).into(),
            image: stage.image(COUNT),
            ..EvaluateFunctionRequest::default()
        });
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let parent = parent.parse().expect("a header");
        request.metadata_mut().insert("traceparent", parent);
        let answer = client.evaluate_function(request).await;
        answer.expect("the function answers");
        let pod = function_pods(&stage).await.remove(0).name_any();
        // The last step, which no call waits for; after it every span has ended.
        eventually("the pod's address", async || {
            let pods = runner.status().await.pod.expect("the pod runtime is on");
            let mut pods = pods.functions.iter().flat_map(|function| &function.pods);
            pods.any(|pod| pod.start.iter().any(|step| step.step == "address"))
        })
        .await;
        drop(client);
        assert!(runner.stop().await.success());

        let spans = collector.spans();
        let mine = spans.iter().map(|(_, span)| span);
        let mine: Vec<_> = mine.filter(|span| hex(&span.trace_id) == TRACE).collect();
        let named = |name: &str| {
            let found = mine.iter().find(|span| span.name == name);
            found.unwrap_or_else(|| panic!("no span {name}"))
        };
        let evaluate = named("evaluate");
        for name in ["metadata", "wait", "call", "start"] {
            assert_eq!(named(name).parent_span_id, evaluate.span_id, "{name}");
        }
        let start = named("start");
        assert_eq!(attribute(&start.attributes, "pod"), pod);
        assert_eq!(attribute(&named("call").attributes, "pod"), pod);
        for name in ["create", "schedule", "address", "listen", "answer"] {
            assert_eq!(named(name).parent_span_id, start.span_id, "{name}");
        }
        assert!(named("create").end_time_unix_nano <= named("listen").end_time_unix_nano);
        assert!(start.end_time_unix_nano <= named("answer").end_time_unix_nano);
    });
}

#[test]
fn returns_a_long_error_completely() {
    on_cluster(async |stage| {
        let runner = Runner::start_with_announcements(&stage, &[]).await;
        let endpoint = Endpoint::from_shared(format!("http://{}", runner.address()));
        // Like Porch: its user agent, and long headers are accepted.
        let channel = endpoint
            .expect("an address")
            .user_agent("kpt porch-server grpc-go/1.71.0")
            .expect("a header")
            .http2_max_header_list_size(16 << 20)
            .connect_lazy();
        let mut client = FunctionEvaluatorClient::new(channel);
        let image = stage.image("bad/verbose");
        let failed = evaluate(&mut client, &image, resource_list(&[], 1)).await;
        let failed = failed.expect_err("the function fails");
        assert_eq!(failed.code(), Code::Internal, "{failed}");
        let printed = "a line of the log\n".repeat(20480 / 18 + 1);
        let flattened = printed[..20480].trim_end().replace('\n', " | ");
        assert!(
            failed.message().contains(&flattened),
            "{} bytes: {failed}",
            failed.message().len()
        );
        let error = status::decode(&failed);
        assert_eq!(error.fact("exit_code"), Some("3"), "{error:?}");
    });
}
