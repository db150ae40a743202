//! The wrapper under a real kubelet, in pods made from the default template without a runner.

use e2e::{FunctionPod, Injection, connect, evaluate, on_cluster, resource_list};
use tonic::Code;

#[test]
fn a_function_in_a_pod_is_evaluated_through_its_service() {
    on_cluster(async |stage| {
        let image = stage.image("functions/set-label");
        let entrypoint = ["/set-label"];
        let pod = FunctionPod::create(
            &stage,
            "set-label",
            &image,
            &entrypoint,
            Injection::InitContainer,
        )
        .await;
        pod.ready().await;
        let mut client = connect(pod.address()).unwrap();
        let input = resource_list(&[("label", "tier"), ("value", "front")], 2);
        let output = evaluate(&mut client, &image, input).await.unwrap();
        let output = String::from_utf8(output.resource_list.into()).unwrap();
        assert_eq!(output.matches("tier: \"front\"\n").count(), 2, "{output}");
    });
}

#[test]
fn the_wrapper_runs_from_an_image_volume() {
    on_cluster(async |stage| {
        let image = stage.image("functions/count");
        let entrypoint = ["/function.sh"];
        let pod =
            FunctionPod::create(&stage, "count", &image, &entrypoint, Injection::ImageVolume).await;
        pod.ready().await;
        let mut client = connect(pod.address()).unwrap();
        let input = resource_list(&[], 3);
        let output = evaluate(&mut client, &image, input.clone()).await.unwrap();
        assert_eq!(output.resource_list, input.as_bytes());
        let log = String::from_utf8(output.log.into()).unwrap();
        assert_eq!(log, format!("count: {} bytes\n", input.len()));
    });
}

#[test]
fn runs_unchanged_functions_in_go_and_python() {
    on_cluster(async |stage| {
        let cases: [(&str, &[&str], &str); 2] = [
            ("set-namespace", &["/set-namespace"], "namespace: there"),
            (
                "annotate",
                &["/usr/bin/python3", "/function.py"],
                "namespace: there",
            ),
        ];
        for (name, entrypoint, expected) in cases {
            let image = stage.image(&format!("functions/{name}"));
            let pod =
                FunctionPod::create(&stage, name, &image, entrypoint, Injection::InitContainer)
                    .await;
            pod.ready().await;
            let mut client = connect(pod.address()).unwrap();
            let input = resource_list(&[("namespace", "there")], 2);
            let output = evaluate(&mut client, &image, input).await.unwrap();
            let output = String::from_utf8(output.resource_list.into()).unwrap();
            assert_eq!(output.matches(expected).count(), 3, "{name}: {output}");
        }
    });
}

#[test]
fn a_function_that_crashes_fails_its_call_but_not_its_pod() {
    on_cluster(async |stage| {
        let image = stage.image("bad/crash");
        let entrypoint = ["/bin/sh", "-c", "kill -SEGV $$"];
        let pod = FunctionPod::create(
            &stage,
            "crash",
            &image,
            &entrypoint,
            Injection::InitContainer,
        )
        .await;
        pod.ready().await;
        let mut client = connect(pod.address()).unwrap();
        for _ in 0..3 {
            let failure = evaluate(&mut client, &image, resource_list(&[], 1))
                .await
                .unwrap_err();
            assert_eq!(failure.code(), Code::Internal, "{failure:?}");
        }
        let status = pod.current().await.status.unwrap();
        assert_eq!(status.container_statuses.unwrap()[0].restart_count, 0);
    });
}
