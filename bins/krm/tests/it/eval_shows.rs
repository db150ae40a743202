use bytes::Bytes;
use runner_proto::evaluator::EvaluateFunctionResponse;
use runner_test_support::{FakeRunner, Function, Package};

use crate::support::{DEPLOYMENT, SERVICES, eval};

/// Removes the duration of the evaluation, which differs between runs.
fn without_time(text: &str) -> String {
    let time = text
        .trim_end()
        .rsplit_once(" (")
        .filter(|(_, time)| time.ends_with("s)"));
    time.expect("the last line ends with the time taken")
        .0
        .to_owned()
}

#[test]
fn shows_a_change_without_writing_it() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT), ("svc/all.yaml", SERVICES)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        list.replace("replicas: 3", "replicas: 5")
    }));
    let run = eval(&runner, &[package.arg()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(without_time(&run.stdout));
    assert_eq!(package.files()["web.yaml"], DEPLOYMENT);
}

#[test]
fn sends_resources_exactly_as_they_are_written() {
    let package = Package::new(&[
        ("web.yaml", DEPLOYMENT),
        ("values.yaml", "not: a resource\n"),
    ]);
    let runner = FakeRunner::start(Function::identity());
    let run = eval(
        &runner,
        &["--tag", ">=1.0.0", package.arg(), "label=tier", "on=yes"],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let request = runner.request();
    assert_eq!(
        (request.image.as_str(), request.tag.as_str()),
        ("example.com/fn:v1", ">=1.0.0")
    );
    let list = String::from_utf8(request.resource_list.to_vec()).unwrap();
    insta::assert_snapshot!(list);
}

#[test]
fn accepts_a_file_as_configuration() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let config = "---\n# about\napiVersion: example.com/v1\nkind: Config # kind\nspec: {a: yes}\n";
    let other = Package::new(&[("config.yaml", config)]);
    let path = other.path().join("config.yaml");
    let runner = FakeRunner::start(Function::identity());
    let run = eval(
        &runner,
        &["--fn-config", path.to_str().unwrap(), package.arg()],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected = "functionConfig:\n  # about\n  apiVersion: example.com/v1\n  kind: Config # kind\n  spec: {a: yes}\n";
    let list = runner.list();
    assert!(list.ends_with(expected), "{list}");
}

#[test]
fn shows_results_and_log_and_fails_for_a_result_of_severity_error() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::Answers(Box::new(|list| {
        let results = "\
results:
- message: 3 replicas are many
  severity: warning
  field: {path: spec.replicas, currentValue: 3, proposedValue: 2}
- message: no namespace
  severity: error
  resourceRef: {apiVersion: apps/v1, kind: Deployment, name: web}
";
        Ok(EvaluateFunctionResponse {
            resource_list: Bytes::from(list.replace("replicas: 3", "replicas: 2") + results),
            log: Bytes::from_static(b"reading\n\x1b[31mdone\n"),
        })
    })));
    let run = eval(&runner, &["--in-place", package.arg()]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(without_time(&run.stdout));
    insta::assert_snapshot!(run.stderr);
    assert_eq!(
        package.files()["web.yaml"],
        DEPLOYMENT,
        "errors keep changes from being written"
    );
}

#[test]
fn uses_no_colour_without_a_terminal() {
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start(Function::edits(|list| {
        list.replace("nginx:1.27", "nginx:1.28")
    }));
    let run = eval(&runner, &[package.arg()]);
    assert!(run.stdout.contains("+          image: "), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'));
}

#[test]
fn prints_usage_and_examples_with_help() {
    let run = crate::support::krm(&["eval", "--help"], "");
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stdout);
}
