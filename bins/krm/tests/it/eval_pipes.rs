use runner_test_support::{FakeRunner, Function, Package};

use crate::support::{DEPLOYMENT, eval, eval_with_input, krm};

const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: X # kept
  spec: {a: yes}
";

#[test]
fn passes_a_list_through_unchanged() {
    let runner = FakeRunner::start(Function::edits(|list| list.replace("a: yes", "a: no")));
    let run = eval_with_input(&runner, &["-"], LIST);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout, LIST.replace("a: yes", "a: no"));
    assert_eq!(runner.list(), LIST);
}

#[test]
fn adds_the_configuration_to_a_list() {
    let runner = FakeRunner::start(Function::identity());
    let run = eval_with_input(&runner, &["-", "a=b"], LIST);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with(LIST), "{}", run.stdout);
    assert!(
        run.stdout.contains("functionConfig:\n  apiVersion: v1\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn writes_results_to_standard_error() {
    let runner = FakeRunner::start(Function::edits(|list| {
        format!("{list}results:\n- message: careful\n  severity: warning\n")
    }));
    let run = eval_with_input(&runner, &["-"], LIST);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with(LIST));
    assert!(run.stderr.contains("careful"), "{}", run.stderr);
}

#[test]
fn writes_a_package_as_a_list() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::identity());
    let run = eval(&runner, &["--output", "-", package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, runner.list());
    assert!(run.stderr.contains("1 unchanged"), "{}", run.stderr);
}

#[test]
fn does_not_send_input_that_is_not_a_list() {
    let run = krm(&["eval", "--image", "x:v1", "-"], "a: 1\n");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("standard input is not a ResourceList"),
        "{}",
        run.stderr
    );
}
