//! Tests of the duties of the first process of a pod.

use std::{error::Error, fs, net::TcpStream, process::Command};

use runner_test_support::{
    Gate, LIST, Request, ServerProcess, eventually, exists, list_of, log_of,
};
use rustix::process::Signal;
use tonic::Code;

use crate::support::{Root, Setup};

async fn holding(gate: &Gate, drain: u32) -> ServerProcess {
    Setup::script(&gate.script())
        .pid_one()
        .flag("--max-parallel=4")
        .flag(format!("--drain-timeout={drain}"))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn reaps_processes_that_functions_leave_behind() {
    // Both leave the process group; one ends soon, the other runs for a long time.
    let script = "setsid sh -c : & setsid sleep 600 & cat";
    let wrapper = Setup::script(script)
        .pid_one()
        .flag("--standby=0")
        .start()
        .await;
    let client = wrapper.client().await;
    for _ in 0..5 {
        assert_eq!(list_of(client.call("fn").await), LIST);
    }
    eventually("no child is left, dead or alive", || {
        wrapper.children().is_empty()
    })
    .await;
    assert_eq!(list_of(client.call("fn").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn finishes_running_evaluations_and_refuses_new_ones_after_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let gate = Gate::new();
        let mut wrapper = holding(&gate, 600).await;
        let client = wrapper.client().await;
        let running = tokio::spawn({
            let client = client.clone();
            async move { client.call("fn").await }
        });
        gate.holds(1).await;
        wrapper.signal(signal);
        wrapper.logged("draining").await;
        // The wrapper refuses the call, or the client does, since its connection takes no more
        // calls. The client's code depends on when it receives the GOAWAY, but its error always
        // has a source.
        let refused = client.call("fn").await.unwrap_err();
        let by_us = refused.code() == Code::Unavailable;
        assert!(by_us || refused.source().is_some(), "{refused:?}");
        eventually("new connections are refused", || {
            TcpStream::connect(wrapper.address).err()
        })
        .await;
        gate.open();
        assert_eq!(list_of(running.await.unwrap()), LIST);
        assert_eq!(gate.holds(1).await.len(), 1);
        assert_eq!(wrapper.ended().await.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_everything_immediately_after_a_second_signal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let gate = Gate::new();
        let mut wrapper = holding(&gate, 600).await;
        let client = wrapper.client().await;
        let running = tokio::spawn(async move { client.call("fn").await });
        gate.holds(1).await;
        let functions = wrapper.children();
        wrapper.signal(signal);
        wrapper.logged("draining").await;
        wrapper.signal(signal);
        assert_eq!(wrapper.ended().await.code(), Some(code));
        assert!(running.await.unwrap().is_err());
        eventually("no function is left", || {
            let mut pids = functions.iter().map(|pid| pid.as_raw_pid().unsigned_abs());
            !pids.any(exists)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn survives_broken_pipes_and_sigpipe() {
    let wrapper = Setup::script(
        "exec 0<&-; printf 'kind: ResourceList\napiVersion: config.kubernetes.io/v1\n'",
    )
    .pid_one()
    .start()
    .await;
    let client = wrapper.client().await;
    let large = format!("{LIST}# {}\n", "x".repeat(1 << 20));
    for _ in 0..3 {
        wrapper.signal(Signal::PIPE);
        let list = list_of(client.send(Request::of("fn").list(large.clone())).await);
        assert!(list.starts_with("kind: ResourceList"), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_a_function_with_default_signals_and_no_extra_descriptors() {
    let script = "yes | head -n 1 >&2; busybox ls /proc/self/fd >&2; \
         grep -E '^Sig(Blk|Ign)' /proc/self/status >&2; cat";
    let wrapper = Setup::script(script).pid_one().start().await;
    let client = wrapper.client().await;
    client.call("fn").await.unwrap();
    // The expected output comes from the same script without the wrapper: the test runner may
    // leave descriptors open or signals ignored. Signals that the wrapper handles must have their
    // default action again.
    let plain = Command::new("env")
        .args(["--default-signal=INT,TERM,CHLD", "/bin/sh", "-c", script])
        .output();
    let plain = String::from_utf8(plain.unwrap().stderr).unwrap();
    assert_eq!(log_of(client.call("fn").await), plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_images_variables_but_not_its_own() {
    let given = [("PATH", "/usr/bin:/bin"), ("LANG", "C"), ("EMPTY", "")];
    let ours = [
        ("KRM_WRAPPER_RUNNER", "127.0.0.1:9"),
        ("KRM_WRAPPER_SLOT", "slot"),
        ("KRM_WRAPPER_TOKEN", "secret"),
        ("KRM_WRAPPER_POD_ADDRESS", "198.18.0.1"),
        ("KRM_WRAPPER_ANYTHING", "else"),
    ];
    let all: Vec<_> = given.into_iter().chain(ours).collect();
    let wrapper = Setup::script("cat /proc/$$/environ >&2; cat")
        .pid_one()
        .only_env(&all)
        .start()
        .await;
    let log = log_of(wrapper.client().await.call("fn").await);
    let mut seen: Vec<&str> = log.split_terminator('\0').collect();
    seen.sort_unstable();
    assert_eq!(seen, ["EMPTY=", "LANG=C", "PATH=/usr/bin:/bin"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_its_environment_in_proc_from_functions_of_the_same_user() {
    let root = Root::empty();
    let script = "cat /proc/1/environ >&2 || echo refused >&2; cat";
    let wrapper = Setup::script(script)
        .pid_one()
        .nobody()
        .env("KRM_WRAPPER_TOKEN", "secret")
        .program(root.at("/wrapper-server"))
        .start()
        .await;
    let log = log_of(wrapper.client().await.call("fn").await);
    assert!(
        log.ends_with("refused\n") && !log.contains("secret"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_a_function_in_the_images_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let wrapper = Setup::script("pwd >&2; cat")
        .pid_one()
        .directory(directory.path())
        .start()
        .await;
    let log = log_of(wrapper.client().await.call("fn").await);
    let real = fs::canonicalize(directory.path()).unwrap();
    assert_eq!(log.trim_end(), real.to_str().unwrap());
}
