//! Tests of the example package and of the example function that needs no build.

use std::{fs, path::Path, process::Command};

use bytes::Bytes;
use runner_proto::evaluator::EvaluateFunctionResponse;
use runner_test_support::{FakeRunner, Function, Package, run};

use crate::support::eval;

fn examples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

/// Runs the script as a runner would, except that a failure is returned as a response.
fn require_namespace(list: &str) -> EvaluateFunctionResponse {
    let mut script = Command::new(examples().join("functions/require-namespace.sh"));
    let run = run(&mut script, list);
    let found = run.stdout.contains("severity: error");
    assert_eq!(run.code, i32::from(found));
    EvaluateFunctionResponse {
        resource_list: Bytes::from(run.stdout),
        log: Bytes::from(run.stderr),
    }
}

#[test]
fn finds_one_error_in_the_example_package() {
    let runner = FakeRunner::start(Function::Answers(Box::new(|list| {
        Ok(require_namespace(list))
    })));
    let run = eval(&runner, &[examples().join("package").to_str().unwrap()]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stdout.contains("ConfigMap/shop-pages"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("5 unchanged; 1 error;"),
        "{}",
        run.stdout
    );
    assert_eq!(
        run.stderr,
        "log: checked 4 resources, 1 without a namespace\nerror: the function reports 1 error\n"
    );
}

#[test]
fn accepts_a_correct_package_and_warns_about_the_default_namespace() {
    let service = fs::read_to_string(examples().join("package/service.yaml")).unwrap();
    let package = Package::new(&[
        ("a.yaml", &service),
        (
            "b.yaml",
            &service
                .replace("namespace: shop", "namespace: default")
                .replace("web", "b"),
        ),
        (
            "c.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n",
        ),
    ]);
    let runner = FakeRunner::start(Function::Answers(Box::new(|list| {
        Ok(require_namespace(list))
    })));
    let run = eval(&runner, &[package.arg()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.contains("5 unchanged; 2 warnings;"),
        "{}",
        run.stdout
    );
}

#[test]
fn exits_with_code_2_for_input_that_is_not_a_list() {
    let output = Command::new(examples().join("functions/require-namespace.sh"))
        .stdin(fs::File::open(examples().join("config.yaml")).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
