//! Tests of `cp`, `install` and `hold`, which bring the wrapper into a pod.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use runner_test_support::{LIST, eventually, list_of};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Root, Setup, wrapper_server};

/// Returns a root with the files of the wrapper's image.
fn image() -> Root {
    let root = Root::empty();
    root.add(
        wrapper_server(),
        "/home/nonroot/wrapper-server/wrapper-server",
    );
    root.link(
        "wrapper-server",
        "/home/nonroot/wrapper-server/grpc-health-probe",
    );
    root.link("/home/nonroot/wrapper-server/wrapper-server", "/bin/cp");
    fs::create_dir(root.at("/wrapper-server-tools")).unwrap();
    root
}

/// Runs a command in the root.
fn run(root: &Root, words: &[&str]) -> Output {
    let before = root.enter();
    Command::new(&before[0])
        .args(&before[1..])
        .args(words)
        .output()
        .unwrap()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The command with which pod templates copy the tools.
const COPY: [&str; 4] = [
    "/bin/cp",
    "-a",
    "/home/nonroot/wrapper-server/.",
    "/wrapper-server-tools",
];

/// Evaluates a function with the tools of a directory and runs the probe.
async fn serves(tools: &Path) {
    let program = tools.join("wrapper-server");
    let wrapper = Setup::script("cat").program(&program).start().await;
    assert_eq!(list_of(wrapper.client().await.call("fn").await), LIST);
    let address = wrapper.address.to_string();
    let probe = Command::new(tools.join("grpc-health-probe"))
        .args(["-addr", &address])
        .status();
    assert!(probe.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_its_tools_repeatedly_as_pod_templates_do() {
    let root = image();
    let tools = root.at("/wrapper-server-tools");
    for _ in 0..2 {
        succeeds(&run(&root, &COPY));
        assert_eq!(names(&tools), ["grpc-health-probe", "wrapper-server"]);
    }
    let mode = fs::metadata(tools.join("wrapper-server"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    serves(&tools).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_a_running_program() {
    let root = image();
    succeeds(&run(&root, &COPY));
    let wrapper = Setup::script("cat")
        .program(root.at("/wrapper-server-tools/wrapper-server"))
        .start()
        .await;
    succeeds(&run(&root, &COPY));
    assert_eq!(list_of(wrapper.client().await.call("fn").await), LIST);
    serves(&root.at("/wrapper-server-tools")).await;
}

#[test]
fn copies_a_single_file_to_a_name_or_into_a_directory() {
    let root = image();
    let source = "/home/nonroot/wrapper-server/wrapper-server";
    for (target, result) in [
        ("/tool", "/tool"),
        (
            "/wrapper-server-tools",
            "/wrapper-server-tools/wrapper-server",
        ),
    ] {
        succeeds(&run(&root, &["/bin/cp", source, target]));
        assert_eq!(
            fs::read(root.at(result)).unwrap(),
            fs::read(wrapper_server()).unwrap()
        );
    }
}

#[test]
fn reports_a_failed_copy_and_leaves_nothing_behind() {
    let root = image();
    for (words, says) in [
        (
            &["/bin/cp", "-a", "/no/such/.", "/wrapper-server-tools"][..],
            "/no/such",
        ),
        (
            &["/bin/cp", "/home", "/wrapper-server-tools"],
            "is a directory",
        ),
        (&["/bin/cp", "-z", "a", "b"], "unknown option -z"),
    ] {
        let output = run(&root, words);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("cp: ") && said.contains(says), "{said}");
        assert!(names(&root.at("/wrapper-server-tools")).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn installs_itself_and_its_probe_into_a_volume() {
    let volume = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut command = Command::new(wrapper_server());
        succeeds(&command.arg("install").arg(volume.path()).output().unwrap());
        assert_eq!(
            names(volume.path()),
            ["grpc-health-probe", "wrapper-server"]
        );
    }
    serves(volume.path()).await;
}

#[test]
fn reports_a_failed_installation() {
    for (words, code, says) in [
        (&["install"][..], 2, "install needs one directory"),
        (&["install", "/no/such"], 1, "/no/such"),
    ] {
        let output = Command::new(wrapper_server()).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
}

#[tokio::test]
async fn exits_from_hold_on_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut holder = Command::new(wrapper_server()).arg("hold").spawn().unwrap();
        let pid = Pid::from_child(&holder);
        // The kernel drops signals to a PID 1 without a handler.
        eventually("it catches the signal", || {
            let status = fs::read_to_string(format!("/proc/{}/status", holder.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
            caught >> (signal.as_raw() - 1) & 1 == 1
        })
        .await;
        kill_process(pid, signal).unwrap();
        let ended = eventually("it ends", || holder.try_wait().unwrap()).await;
        assert_eq!(ended.code(), Some(0));
    }
}
